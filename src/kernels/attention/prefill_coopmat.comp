// Tiled attention with cooperative matrices, for 16-bit q, k, v with rows
// aligned to 16 bytes and head dimensions in multiples of 16 up to 128.
//
// Each subgroup takes 16 query rows (8 with 16 lanes) and all share tiles of 64
// keys. q stays in registers as matrices. Scores of a tile pass through the
// subgroup's part of shared memory, where two lanes per row run the online
// softmax; weights return as 16-bit matrices, and y's matrices are scaled by a
// matrix that repeats the row factors. k and v share a buffer; the next one is
// prefetched into registers.
#define BQ 64
#define BK 64
#include "attention/prefill.glsl"
#include "attention/row_lanes.glsl"

layout(local_size_x = WG) in;

#define PITCH_K (D / 8 + 1)
#define PITCH_V (DV / 8 + 1)
#if D > DV
#define STAGED (BK * PITCH_K)
#else
#define STAGED (BK * PITCH_V)
#endif
#define S_PITCH 68 // floats per row of scores
#define P_PITCH 36 // uints per row of weights
#define S_CORNER (ROWS * S_PITCH)
#define P_CORNER (ROWS * P_PITCH)
#define LOADS(DIM) (BQ * DIM / 8 / WG)

shared uvec4 staged[STAGED]; // q, then k and v alternately
shared float scores[SUBGROUPS * S_CORNER];
shared uint weights[SUBGROUPS * P_CORNER];

// Loads this invocation's part of 64 rows of DIM items, and stores it to
// `staged`.
#define FETCH_ROWS(next, DIM, x, pitch, first, end)                           \
  [[unroll]] for (uint i = 0; i < LOADS(DIM); ++i) {                          \
    uint e = gl_LocalInvocationIndex + i * WG;                                \
    next[i] = fetch(x, pitch, (first) + e / (DIM / 8), e % (DIM / 8), end);   \
  }
#define STAGE_ROWS(next, DIM)                                                 \
  [[unroll]] for (uint i = 0; i < LOADS(DIM); ++i) {                          \
    uint e = gl_LocalInvocationIndex + i * WG;                                \
    staged[e / (DIM / 8) * (DIM / 8 + 1) + e % (DIM / 8)] = next[i];          \
  }

float row_max, row_sum;

// Turns scores into weights and writes the rescaling factors as a matrix over
// the scores.
void weigh(Tile tile, uint query, uint key0) {
  uint sg = SUBGROUP;
  // A lane takes 32 keys in pairs. Rows start at different pairs to avoid bank
  // conflicts.
  uint s_row = sg * S_CORNER + ROW * S_PITCH + HALF_ROW * 32;
  float x[32];
  float m = row_max;
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    uint pair = (i + HALF_ROW + ROW / 8) % 16;
    [[unroll]] for (uint e = 0; e < 2; ++e) {
      uint key = key0 + HALF_ROW * 32 + pair * 2 + e;
      float s = scores[s_row + pair * 2 + e] * A.scale;
      x[i * 2 + e] = final_score(tile, query, key, s);
      m = max(m, x[i * 2 + e]);
    }
  }
  m = max(m, subgroupShuffleXor(m, 1));
  float total = 0.0;
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    uint pair = (i + HALF_ROW + ROW / 8) % 16;
    float a = exp2_diff(x[i * 2], m);
    float b = exp2_diff(x[i * 2 + 1], m);
    total += a + b;
    weights[sg * P_CORNER + ROW * P_PITCH + HALF_ROW * 16 + pair] =
        pack2(a, b);
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

  uvec4 next_k[LOADS(D)];
  FETCH_ROWS(next_k, D, q, A.q_strides.row, tile.query0, A.queries)
  STAGE_ROWS(next_k, D)
  barrier();
  MATRIX_A qm[FQ * (D / MK)];
  UNROLL for (uint d = 0; d < FQ * (D / MK); ++d) {
    uint at = (sg * ROWS + d % FQ * MM) * PITCH_K + d / FQ * (MK / 8);
    LOAD_A(qm[d], staged, at, PITCH_K, ROW_MAJOR);
  }

  MATRIX_C acc[FQ * (DV / MN)];
  UNROLL for (uint j = 0; j < FQ * (DV / MN); ++j) {
    acc[j] = MATRIX_ZERO;
  }
  row_max = ABSENT;
  row_sum = 0.0;
  FETCH_ROWS(next_k, D, k, A.k_strides.row, 0, key_end)

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    barrier(); // q or v is no longer read
    STAGE_ROWS(next_k, D)
    barrier();
    uvec4 next_v[LOADS(DV)];
    FETCH_ROWS(next_v, DV, v, A.v_strides.row, key0, key_end)

    SCORE_KEYS(qm, sg)
    barrier(); // scores are visible, k is no longer read
    STAGE_ROWS(next_v, DV)
    weigh(tile, query, key0);
    barrier(); // weights, factors and v are visible

    if (key0 + BK < key_end) {
      FETCH_ROWS(next_k, D, k, A.k_strides.row, key0 + BK, key_end)
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
        uint at = i * MK * PITCH_V + j * (MN / 8);
        LOAD_B(vm, staged, at, PITCH_V, ROW_MAJOR);
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
