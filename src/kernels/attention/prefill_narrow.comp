// As prefill_coopmat.comp, for subgroups of 16 lanes, whose registers hold y's
// matrices and little more (Intel's), and head dimensions in multiples of 32.
//
// Two subgroups share 16 query rows: each makes the scores of half of a tile's
// keys and half of y's columns, so that a matrix of k or v, which takes long to
// load, serves two of rows. What would fill registers is in shared memory: q,
// addresses, strides. y's matrices are scaled only where a row's maximum grows.
#include "attention/prefill_matrices.glsl"

shared uvec4 q_rows[BQ * PITCH_K];
shared uvec4 staged[BIGGER(BK * PITCH_K, DV * PITCH_V)]; // k and v alternately
shared float scores[BQ * S_PITCH];
shared uint weights[BQ * P_PITCH];
shared float keep_row[BQ]; // factors of earlier sums
shared bool grown[BQ / 16]; // whether one of them is not 1
shared uint seen_keys[BQ]; // keys that the causal mask leaves a row
shared uint y_low[BQ], y_high[BQ]; // address of a row of y; 0: there is none
shared uvec4 k_rows, v_rows; // address of the first row, bytes between rows
shared float scale;

#define FRAGMENTS (16 / MM) // of the rows that two subgroups share
#define PAIR (SUBGROUP / 2)
#define FIRST_ROW (PAIR * 16)
#define PART (SUBGROUP % 2)
#define OWN_ROW (SUBGROUP * ROWS + ROW)

uvec4 rows_of(T_PTR x, int64_t pitch) {
  return uvec4(unpack32(uint64_t(x)), unpack32(uint64_t(pitch * 2)));
}
#define BYTES_A_ROW(rows) pack64(rows.zw)
#define ROW_AT(rows, row) (pack64(rows.xy) + (row) * BYTES_A_ROW(rows))

// 16 bytes, zero where there is no such row.
uvec4 piece_of(uint64_t at, bool inside) {
  uvec4 y = uvec4(0);
  if (inside) {
    y = Ptr_u32x4(at).v[0];
  }
  return y;
}

// Four invocations copy a row of q or k, in pieces of eight items.
#define LINES (WG / 4)
#define LINE (gl_LocalInvocationIndex / 4)
#define LINE_PIECE (gl_LocalInvocationIndex % 4)
#define LINE_PIECES (D / 32)
uvec4[LINE_PIECES] fetch_line(uint64_t at, bool inside) {
  uvec4 next[LINE_PIECES];
  [[unroll]] for (uint i = 0; i < LINE_PIECES; ++i) {
    next[i] = piece_of(at + i * 64, inside);
  }
  return next;
}
#define STAGE_LINE(to, row, next, top)                                        \
  REQUIRE(next.length() * 32 == D)                                            \
  [[unroll]] for (uint i = 0; i < LINE_PIECES; ++i) {                         \
    TO_ITEMS(next[i], top)                                                    \
    to[(row) * PITCH_K + LINE_PIECE + i * 4] = next[i];                       \
  }

// An invocation's pieces of v: of two keys, each eighth. Most neighbours have
// other keys, so that their stores are in other banks.
#define V_FOUR (gl_LocalInvocationIndex / 8 % (BK / 8))
#define V_KEY ((V_FOUR * 4 + LINE_PIECE) * 2)
#define V_PIECE(i) (gl_LocalInvocationIndex / BK * 2 + LINE % 2 + (i) * 8)
#define V_LOADS ((DV / 8 + 7) / 8)
#define HAS_V(i) (DV / 8 % 8 == 0 || V_PIECE(i) < DV / 8)
uvec4[2] fetch_v(uint key0, uint end, uint i) {
  uint key = key0 + V_KEY;
  uint64_t at = ROW_AT(v_rows, key) + V_PIECE(i) * 16;
  return uvec4[2](
      piece_of(at, HAS_V(i) && key < end),
      piece_of(at + BYTES_A_ROW(v_rows), HAS_V(i) && key + 1 < end));
}

// Stores them transposed: words of two keys.
void stage_v(uvec4 next[2], uint i) {
  REQUIRE(WG / BK * 2 == 8 && V_LOADS * 64 >= DV)
  if (HAS_V(i)) {
    TO_ITEMS(next[0], v_top)
    TO_ITEMS(next[1], v_top)
    [[unroll]] for (uint d = 0; d < 8; ++d) {
      uint low = next[0][d / 2], high = next[1][d / 2];
      staged[(V_PIECE(i) * 8 + d) * PITCH_V + V_FOUR][LINE_PIECE] = d % 2 == 0
          ? (low & 0xffffu) | high << 16
          : low >> 16 | (high & 0xffff0000u);
    }
  }
}

float row_max, row_sum;

// Turns scores into weights. A lane takes half of the keys of a row.
void make_weights(Tile tile, uint key0) {
  uint seen = seen_keys[OWN_ROW];
  uint first = HALF_ROW * (BK / 2);
  uint s_row = OWN_ROW * S_PITCH + first;
  uint p_row = OWN_ROW * P_PITCH + first / 2;
  float x[BK / 2];
  float m = row_max;
  [[unroll]] for (uint i = 0; i < BK / 2; ++i) {
    uint key = key0 + first + i;
    float s = scores[s_row + i] * scale;
#if MASK
    x[i] = final_score(tile, tile.query0 + OWN_ROW, key, s);
#else
    x[i] = key < seen ? s : key < tile.key_end ? HIDDEN : ABSENT;
#endif
    m = max(m, x[i]);
  }
  m = max(m, subgroupShuffleXor(m, 1));
  float total = 0.0;
  [[unroll]] for (uint i = 0; i < BK / 4; ++i) {
    float a = exp2_diff(x[i * 2], m);
    float b = exp2_diff(x[i * 2 + 1], m);
    total += a + b;
    weights[p_row + i] = PACK_WEIGHTS(a, b); // if NaN, so is row_sum
  }
  total += subgroupShuffleXor(total, 1);
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + total;
  row_max = m;
  keep_row[OWN_ROW] = keep;
  if (keep != 1.0) {
    grown[PAIR] = true;
  }
}

// Macros, so that matrices stay in registers: the scores of the part's keys, and
// the weighted values in the part's columns.
#define SCORE_KEYS                                                            \
  {                                                                           \
    MATRIX_C s[FRAGMENTS * (BK / 2 / MN)];                                    \
    UNROLL for (uint j = 0; j < FRAGMENTS * (BK / 2 / MN); ++j) {             \
      s[j] = MATRIX_ZERO;                                                     \
    }                                                                         \
    UNROLL for (uint d = 0; d < D / MK; ++d) {                                \
      MATRIX_B km[BK / 2 / MN];                                               \
      UNROLL for (uint j = 0; j < BK / 2 / MN; ++j) {                         \
        uint at = (PART * (BK / 2) + j * MN) * PITCH_K + d * (MK / 8);        \
        LOAD_B(km[j], staged, at, PITCH_K, COLUMN_MAJOR);                     \
      }                                                                       \
      UNROLL for (uint i = 0; i < FRAGMENTS; ++i) {                           \
        MATRIX_A qm;                                                          \
        uint at = (FIRST_ROW + i * MM) * PITCH_K + d * (MK / 8);              \
        LOAD_A(qm, q_rows, at, PITCH_K, ROW_MAJOR);                           \
        UNROLL for (uint j = 0; j < BK / 2 / MN; ++j) {                       \
          MULTIPLY_ADD(s[j * FRAGMENTS + i], qm, km[j]);                      \
        }                                                                     \
      }                                                                       \
    }                                                                         \
    UNROLL for (uint j = 0; j < FRAGMENTS * (BK / 2 / MN); ++j) {             \
      uint at = (FIRST_ROW + j % FRAGMENTS * MM) * S_PITCH +                  \
          PART * (BK / 2) + j / FRAGMENTS * MN;                               \
      STORE_C(s[j], scores, at, S_PITCH);                                     \
    }                                                                         \
  }
#define SUM_VALUES                                                            \
  if (grown[PAIR]) {                                                          \
    UNROLL for (uint i = 0; i < FRAGMENTS; ++i) {                             \
      MATRIX_C factors;                                                       \
      LOAD_ROWS(factors, keep_row, FIRST_ROW + i * MM);                       \
      UNROLL for (uint j = 0; j < DV / 2 / MN; ++j) {                         \
        MULTIPLY_ELEMENTS(acc[j * FRAGMENTS + i], factors);                   \
        HOLD_SUM(acc[j * FRAGMENTS + i])                                      \
      }                                                                       \
    }                                                                         \
  }                                                                           \
  MATRIX_A pm[FRAGMENTS * (BK / MK)];                                         \
  UNROLL for (uint i = 0; i < FRAGMENTS; ++i) {                               \
    UNROLL for (uint b = 0; b < BK / MK; ++b) {                               \
      uint at = (FIRST_ROW + i * MM) * P_PITCH + b * (MK / 2);                \
      LOAD_A(pm[b * FRAGMENTS + i], weights, at, P_PITCH, ROW_MAJOR);         \
    }                                                                         \
  }                                                                           \
  UNROLL for (uint j = 0; j < DV / 2 / MN; ++j) {                             \
    UNROLL for (uint b = 0; b < BK / MK; ++b) {                               \
      MATRIX_B vm;                                                            \
      uint at = (PART * (DV / 2) + j * MN) * PITCH_V + b * (MK / 8);          \
      LOAD_B(vm, staged, at, PITCH_V, COLUMN_MAJOR);                          \
      UNROLL for (uint i = 0; i < FRAGMENTS; ++i) {                           \
        MULTIPLY_ADD(acc[j * FRAGMENTS + i], pm[b * FRAGMENTS + i], vm);      \
      }                                                                       \
    }                                                                         \
  }

// Copies q and what the row and the tile need.
void begin(Tile tile) {
  uvec4 rows = rows_of(
      AT_HEAD(A.q, A.q_strides, tile.batch, tile.head), A.q_strides.row);
  [[unroll]] for (uint r = 0; r < BQ; r += LINES) {
    uint row = tile.query0 + r + LINE;
    // Unlike k's offset, so that compilers do not keep one for both.
    uint64_t at = ROW_AT(rows, row) + gl_LocalInvocationIndex * 16 % 64;
    uvec4 next[] = fetch_line(at, row < A.queries);
    STAGE_LINE(q_rows, r + LINE, next, q_top)
  }
  k_rows = rows_of(
      AT_HEAD(A.k, A.k_strides, tile.batch, tile.kv_head), A.k_strides.row);
  v_rows = rows_of(
      AT_HEAD(A.v, A.v_strides, tile.batch, tile.kv_head), A.v_strides.row);
  scale = SCORE_SCALE;
  uint query = tile.query0 + OWN_ROW;
#if CAUSAL
  seen_keys[OWN_ROW] = uint(max(int(query + 1 + A.keys - A.queries), 0));
#else
  seen_keys[OWN_ROW] = A.keys;
#endif
  uint64_t row =
      (uint64_t(tile.batch) * A.queries + query) * A.heads + tile.head;
  uvec2 y = unpack32(uint64_t(MOVED(T, A.y, row * DV)));
  y_low[OWN_ROW] = query < A.queries ? y.x : 0;
  y_high[OWN_ROW] = query < A.queries ? y.y : 0;
  row_max = ABSENT;
  row_sum = 0.0;
}

void attend(Tile tile) {
  REQUIRE(LINES == BK && BQ % LINES == 0)
  uint key_end = tile.key_end;
  begin(tile);
  MATRIX_C acc[FRAGMENTS * (DV / 2 / MN)];
  UNROLL for (uint j = 0; j < FRAGMENTS * (DV / 2 / MN); ++j) {
    BEGIN_SUM(acc[j])
  }
  barrier(); // k_rows is visible

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    uint key = key0 + LINE;
    uint64_t k_at = ROW_AT(k_rows, key) + LINE_PIECE * 16;
    uvec4 next_k[] = fetch_line(k_at, key < key_end);
    barrier(); // v is no longer read
    STAGE_LINE(staged, LINE, next_k, k_top)
    barrier(); // q and k are visible
    grown[PAIR] = false;
    SCORE_KEYS
    [[unroll]] for (uint i = 0; i < V_LOADS; ++i) {
      uvec4 next_v[] = fetch_v(key0, key_end, i);
      if (i == 0) {
        barrier(); // scores are visible, k is no longer read
      }
      stage_v(next_v, i);
    }
    make_weights(tile, key0);
    barrier(); // weights, factors and v are visible
    SUM_VALUES
  }

  float keep = add_sink(tile.head, row_max, row_sum);
  uint query = tile.query0 + OWN_ROW;
  if (HALF_ROW == 0 && query < A.queries) {
    store_lse(tile.batch, tile.head, query, row_max, row_sum);
  }
  float factor = row_sum == 0.0 ? 0.0 : keep / row_sum;
#if HALVES
  factor *= y_scale;
#endif
  uint64_t y = pack64(uvec2(y_low[OWN_ROW], y_high[OWN_ROW]));
  // Stores sixteen columns of either part at a time, as 16 rows of 32 floats.
  UNROLL for (uint j = 0; j < DV / 32; ++j) {
    barrier();
    UNROLL for (uint i = 0; i < FRAGMENTS * (16 / MN); ++i) {
      uint to = FIRST_ROW * S_PITCH + i % FRAGMENTS * (MM * 32) + PART * 16 +
          i / FRAGMENTS * MN;
      STORE_C(acc[j * (16 / MN) * FRAGMENTS + i], scores, to, 32);
    }
    barrier();
    [[unroll]] for (uint part = 0; part < 2; ++part) {
      uint at = FIRST_ROW * S_PITCH + OWN_ROW % 16 * 32 + part * 16 +
          HALF_ROW * 8;
      uint column = part * (DV / 2) + j * 16 + HALF_ROW * 8;
      uvec4 packed;
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        packed[e] = pack2(
            scores[at + e * 2] * factor, scores[at + e * 2 + 1] * factor);
      }
      if (y != 0) {
        Ptr_u32x4(y + column * 2).v[0] = packed;
      }
    }
  }
}
