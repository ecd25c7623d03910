// Tiled attention with cooperative matrices, for 16-bit q, k, v with rows
// aligned to 16 bytes and head dimensions in multiples of 16 up to 128.
//
// Each subgroup takes 16 query rows (8 with 16 lanes) and all share tiles of BK
// keys. q stays in registers as matrices. Scores of a tile pass through the
// subgroup's part of shared memory, where two lanes per row run the online
// softmax; weights return as 16-bit matrices, and y's matrices are scaled by a
// matrix that repeats the row factors. k and v share a buffer, where v is
// transposed, because compilers load matrices along columns item by item; the
// next one is prefetched into registers.
// HALVES: q, k and v are bfloat16, and matrices float16 (attention/halves.glsl).
#include "attention/prefill_matrices.glsl"

#define S_CORNER (ROWS * S_PITCH)
#define P_CORNER (ROWS * P_PITCH)
// q, then k and v alternately; a tile has no more keys than queries.
shared uvec4 staged[BIGGER(BQ * PITCH_K, DV * PITCH_V)];
shared float scores[SUBGROUPS * S_CORNER];
shared uint weights[SUBGROUPS * P_CORNER];

#define STAGE_ITEMS(next, ROWS_, DIM, top)                                    \
  [[unroll]] for (uint i = 0; i < PIECES(ROWS_, DIM); ++i) {                  \
    TO_ITEMS(next[i], top)                                                    \
  }                                                                           \
  STAGE_ROWS(next, ROWS_, DIM, 0)

// v is staged transposed: pieces of eight columns of two keys. Neighbours have
// other keys, so that their stores are in other banks.
#define V_PIECES (BK * DV / 16)
#define V_LOADS ((V_PIECES + WG - 1) / WG)
uvec2 key_and_piece(uint e) {
  return uvec2(e / 2 % (BK / 2) * 2, e / BK * 2 + e % 2);
}
#define FOR_V_PIECES(i, at)                                                   \
  [[unroll]] for (uint i = 0; i < V_LOADS; ++i) {                             \
    uint e = gl_LocalInvocationIndex + i * WG;                                \
    uvec2 at = key_and_piece(e);                                              \
    if (V_PIECES % WG == 0 || e < V_PIECES)
#define FETCH_V(next, x, pitch, first, end)                                   \
  FOR_V_PIECES(i, at) {                                                       \
    next[2 * i] = fetch(x, pitch, (first) + at.x, at.y, end);                 \
    next[2 * i + 1] = fetch(x, pitch, (first) + at.x + 1, at.y, end);         \
  }                                                                           \
  }
#define STAGE_V(next)                                                         \
  REQUIRE(BK * DV <= next.length() * WG * 8)                                  \
  REQUIRE(staged.length() >= DV * PITCH_V)                                    \
  FOR_V_PIECES(i, at) {                                                       \
    TO_ITEMS(next[2 * i], v_top)                                              \
    TO_ITEMS(next[2 * i + 1], v_top)                                          \
    [[unroll]] for (uint d = 0; d < 8; ++d) {                                 \
      uint low = next[2 * i][d / 2], high = next[2 * i + 1][d / 2];           \
      staged[(at.y * 8 + d) * PITCH_V + at.x / 8][at.x / 2 % 4] = d % 2 == 0  \
          ? (low & 0xffffu) | high << 16                                      \
          : low >> 16 | (high & 0xffff0000u);                                 \
    }                                                                         \
  }                                                                           \
  }

float row_max, row_sum;

// Turns scores into weights and writes the rescaling factors as a matrix over
// the scores.
void make_weights(Tile tile, uint query, uint key0) {
  uint sg = SUBGROUP;
  // A lane takes half of the keys in pairs. Rows start at different pairs to
  // avoid bank conflicts.
  uint s_row = sg * S_CORNER + ROW * S_PITCH + HALF_ROW * (BK / 2);
  float x[BK / 2];
  float m = row_max;
  [[unroll]] for (uint i = 0; i < BK / 4; ++i) {
    uint pair = (i + HALF_ROW + ROW / 8) % (BK / 4);
    [[unroll]] for (uint e = 0; e < 2; ++e) {
      uint key = key0 + HALF_ROW * (BK / 2) + pair * 2 + e;
      float s = scores[s_row + pair * 2 + e] * SCORE_SCALE;
      x[i * 2 + e] = final_score(tile, query, key, s);
      m = max(m, x[i * 2 + e]);
    }
  }
  m = max(m, subgroupShuffleXor(m, 1));
  float total = 0.0;
  [[unroll]] for (uint i = 0; i < BK / 4; ++i) {
    uint pair = (i + HALF_ROW + ROW / 8) % (BK / 4);
    float a = exp2_diff(x[i * 2], m);
    float b = exp2_diff(x[i * 2 + 1], m);
    total += a + b;
    weights[sg * P_CORNER + ROW * P_PITCH + HALF_ROW * (BK / 4) + pair] =
        PACK_WEIGHTS(a, b); // if NaN, so is row_sum
  }
  total += subgroupShuffleXor(total, 1);
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + total;
  row_max = m;
  WAIT_SUBGROUP // both lanes have read the row's scores
  [[unroll]] for (uint e = 0; e < MN / 2; ++e) {
    scores[sg * S_CORNER + ROW * MN + HALF_ROW * (MN / 2) + e] = keep;
  }
}

// Computes the subgroup's scores of the staged keys. A macro, so that qm stays
// in registers.
#define SCORE_KEYS(qm, sg)                                                    \
  UNROLL for (uint j = 0; j < BK / MN; ++j) {                                 \
    MATRIX_C s[FQ];                                                           \
    UNROLL for (uint i = 0; i < FQ; ++i) {                                    \
      s[i] = MATRIX_ZERO;                                                     \
    }                                                                         \
    UNROLL for (uint d = 0; d < D / MK; ++d) {                                \
      MATRIX_B km;                                                            \
      uint at = j * MN * PITCH_K + d * (MK / 8);                              \
      LOAD_B(km, staged, at, PITCH_K, COLUMN_MAJOR);                          \
      UNROLL for (uint i = 0; i < FQ; ++i) {                                  \
        MULTIPLY_ADD(s[i], qm[d * FQ + i], km);                               \
      }                                                                       \
    }                                                                         \
    UNROLL for (uint i = 0; i < FQ; ++i) {                                    \
      uint at = sg * S_CORNER + i * MM * S_PITCH + j * MN;                    \
      STORE_C(s[i], scores, at, S_PITCH);                                     \
    }                                                                         \
  }

void attend(Tile tile) {
  uint sg = SUBGROUP;
  uint query = tile.query0 + sg * ROWS + ROW;
  uint key_end = tile.key_end;
  T_PTR q = AT_HEAD(A.q, A.q_strides, tile.batch, tile.head);
  T_PTR k = AT_HEAD(A.k, A.k_strides, tile.batch, tile.kv_head);
  T_PTR v = AT_HEAD(A.v, A.v_strides, tile.batch, tile.kv_head);

  uvec4 next_q[PIECES(BQ, D)], next_k[PIECES(BK, D)];
  FETCH_ROWS(next_q, BQ, D, q, A.q_strides.row, tile.query0, A.queries)
  STAGE_ITEMS(next_q, BQ, D, q_top)
  barrier();
  MATRIX_A qm[FQ * (D / MK)];
  UNROLL for (uint d = 0; d < FQ * (D / MK); ++d) {
    uint at = (sg * ROWS + d % FQ * MM) * PITCH_K + d / FQ * (MK / 8);
    LOAD_A(qm[d], staged, at, PITCH_K, ROW_MAJOR);
  }

  MATRIX_C acc[FQ * (DV / MN)];
  UNROLL for (uint j = 0; j < FQ * (DV / MN); ++j) {
    BEGIN_SUM(acc[j])
  }
  row_max = ABSENT;
  row_sum = 0.0;
  FETCH_ROWS(next_k, BK, D, k, A.k_strides.row, 0, key_end)

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    barrier(); // q or v is no longer read
    STAGE_ITEMS(next_k, BK, D, k_top)
    barrier();
    uvec4 next_v[2 * V_LOADS];
    FETCH_V(next_v, v, A.v_strides.row, key0, key_end)
    SCORE_KEYS(qm, sg)
    barrier(); // scores are visible, k is no longer read
    STAGE_V(next_v)
    make_weights(tile, query, key0);
    barrier(); // weights, factors and v are visible

    if (key0 + BK < key_end) {
      FETCH_ROWS(next_k, BK, D, k, A.k_strides.row, key0 + BK, key_end)
    }
    MATRIX_C factors[FQ];
    MATRIX_A pm[FQ * (BK / MK)];
    UNROLL for (uint q = 0; q < FQ; ++q) {
      LOAD_C(factors[q], scores, sg * S_CORNER + q * ITEMS_C, MN);
      UNROLL for (uint i = 0; i < BK / MK; ++i) {
        uint at = sg * P_CORNER + q * MM * P_PITCH + i * (MK / 2);
        LOAD_A(pm[i * FQ + q], weights, at, P_PITCH, ROW_MAJOR);
      }
    }
    UNROLL for (uint j = 0; j < DV / MN; ++j) {
      UNROLL for (uint q = 0; q < FQ; ++q) {
        MULTIPLY_ELEMENTS(acc[j * FQ + q], factors[q]);
      }
      UNROLL for (uint i = 0; i < BK / MK; ++i) {
        MATRIX_B vm;
        uint at = j * MN * PITCH_V + i * (MK / 8);
        LOAD_B(vm, staged, at, PITCH_V, COLUMN_MAJOR);
        UNROLL for (uint q = 0; q < FQ; ++q) {
          MULTIPLY_ADD(acc[j * FQ + q], pm[i * FQ + q], vm);
        }
      }
    }
  }

  float keep = add_sink(tile.head, row_max, row_sum);
  if (HALF_ROW == 0 && query < A.queries) {
    store_lse(tile.batch, tile.head, query, row_max, row_sum);
  }
  float factor = row_sum == 0.0 ? 0.0 : keep / row_sum;
#if HALVES
  factor *= y_scale;
#endif
  uint64_t row =
      (uint64_t(tile.batch) * A.queries + query) * A.heads + tile.head;
  T_PTR y = MOVED(T, A.y, row * DV);
  // Stores sixteen columns at a time.
  uint at = sg * S_CORNER + ROW * 16 + HALF_ROW * 8;
  UNROLL for (uint j = 0; j < DV / 16; ++j) {
    barrier();
    UNROLL for (uint i = 0; i < FQ * (16 / MN); ++i) {
      uint to = sg * S_CORNER + i % FQ * (MM * 16) + i / FQ * MN;
      STORE_C(acc[j * (16 / MN) * FQ + i], scores, to, 16);
    }
    barrier();
    uvec4 packed;
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      packed[e] = pack2(
          scores[at + e * 2] * factor, scores[at + e * 2 + 1] * factor);
    }
    if (query < A.queries) {
      Ptr_u32x4(uint64_t(y) + (j * 16 + HALF_ROW * 8) * 2).v[0] = packed;
    }
  }
}
