// vjp_scores.comp with cooperative matrices, for 16-bit items, rows aligned to
// 16 bytes and head dimensions in multiples of 16 up to 128. Each subgroup
// takes 16 or 8 queries; all share 64 keys.
#define BQ 64
#include "attention/vjp_scores.glsl"
#include "attention/row_lanes.glsl"
#include "common/constants.glsl"

layout(local_size_x = WG) in;

#define S_PITCH 17 // uvec4s per row of 64 floats
#define S_ITEMS (BQ * S_PITCH)

shared uvec4 staged[S_ITEMS]; // q, k, dO and v in turn; then dO v^T
shared uvec4 scores[S_ITEMS];

// Loads 64 rows of `eighths` 16-byte pieces; zero from row `end` on.
void stage(T_PTR x, int64_t pitch, uint first, uint end, uint eighths) {
  REQUIRE(staged.length() >= 64 * (D / 8 + 1))
  REQUIRE(staged.length() >= 64 * (DV / 8 + 1))
  for (uint e = gl_LocalInvocationIndex; e < 64 * eighths; e += WG) {
    uint r = e / eighths;
    uint c = e % eighths;
    staged[r * (eighths + 1) + c] = fetch(x, pitch, first + r, c, end);
  }
}

// Stores the subgroup's rows of a b^T to TO. No invocation reads `staged`
// afterwards.
#define PRODUCT(NAME, DIM, TO)                                                \
  void NAME(                                                                  \
      T_PTR a, int64_t a_row, uint a0, uint a_end, T_PTR b, int64_t b_row,    \
      uint b0, uint b_end) {                                                  \
    uint corner = SUBGROUP * ROWS;                                            \
    barrier();                                                                \
    stage(a, a_row, a0, a_end, DIM / 8);                                      \
    barrier();                                                                \
    MATRIX_A am[FQ * (DIM / MK)];                                             \
    UNROLL for (uint d = 0; d < FQ * (DIM / MK); ++d) {                       \
      uint at =                                                               \
          (corner + d % FQ * MM) * (DIM / 8 + 1) + d / FQ * (MK / 8);         \
      LOAD_A(am[d], staged, at, DIM / 8 + 1, ROW_MAJOR);                      \
    }                                                                         \
    barrier();                                                                \
    stage(b, b_row, b0, b_end, DIM / 8);                                      \
    barrier();                                                                \
    MATRIX_C y[FQ * (BK / MN)];                                               \
    UNROLL for (uint j = 0; j < BK / MN; ++j) {                               \
      UNROLL for (uint i = 0; i < FQ; ++i) {                                  \
        y[j * FQ + i] = MATRIX_ZERO;                                          \
      }                                                                       \
      UNROLL for (uint d = 0; d < DIM / MK; ++d) {                            \
        MATRIX_B bm;                                                          \
        uint at = j * MN * (DIM / 8 + 1) + d * (MK / 8);                      \
        LOAD_B(bm, staged, at, DIM / 8 + 1, COLUMN_MAJOR);                    \
        UNROLL for (uint i = 0; i < FQ; ++i) {                                \
          MULTIPLY_ADD(y[j * FQ + i], am[d * FQ + i], bm);                    \
        }                                                                     \
      }                                                                       \
    }                                                                         \
    barrier();                                                                \
    UNROLL for (uint j = 0; j < FQ * (BK / MN); ++j) {                        \
      uint at = (corner + j % FQ * MM) * S_PITCH + j / FQ * (MN / 4);         \
      STORE_C4(y[j], TO, at, S_PITCH);                                        \
    }                                                                         \
  }
PRODUCT(multiply_qk, D, scores)
PRODUCT(multiply_cv, DV, staged)

void differentiate(Tile tile) {
  bool skip = all_hidden(tile);
  if (!skip) {
    multiply_qk(
        AT_HEAD(A.q, A.q_strides, tile.batch, tile.head),
        A.q_strides.row, tile.q0, tile.q_end,
        AT_HEAD(A.k, A.k_strides, tile.batch, tile.kv_head),
        A.k_strides.row, tile.k0, tile.k_end);
    multiply_cv(
        AT_HEAD(A.cotan, A.cotan_strides, tile.batch, tile.head),
        A.cotan_strides.row, tile.q0, tile.q_end,
        AT_HEAD(A.v, A.v_strides, tile.batch, tile.kv_head),
        A.v_strides.row, tile.k0, tile.k_end);
    barrier();
  }

  // A lane takes 32 keys, eight at a time, in an order that avoids bank
  // conflicts between the two lanes of a row.
  uint r = SUBGROUP * ROWS + ROW;
  uint query = tile.q0 + r;
  if (query < tile.q_end) {
    Row row = row_of(tile, query);
    for (uint i = 0; i < 4; ++i) {
      uint piece = HALF_ROW * 4 + (i + HALF_ROW * 2) % 4;
      uint key = tile.k0 + piece * 8;
      uvec4 p = uvec4(0);
      uvec4 ds = uvec4(0);
      if (!skip) {
        [[unroll]] for (uint h = 0; h < 2; ++h) {
          vec4 s = uintBitsToFloat(scores[r * S_PITCH + piece * 2 + h]);
          vec4 dp = uintBitsToFloat(staged[r * S_PITCH + piece * 2 + h]);
          vec2 y[4];
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            uint k = min(key + h * 4 + e, A.keys - 1);
            y[e] = weight_and_gradient(row, k, s[e], dp[e]);
          }
          [[unroll]] for (uint e = 0; e < 2; ++e) {
            p[h * 2 + e] = pack2(y[e * 2].x, y[e * 2 + 1].x);
            ds[h * 2 + e] = pack2(y[e * 2].y, y[e * 2 + 1].y);
          }
        }
      }
      // Rows are padded to whole pieces; the padding is never read.
      if (key < tile.k_end) {
        uint64_t to = (row.at + (key - A.key0)) * 2;
        Ptr_u32x4(uint64_t(A.p) + to).v[0] = p;
        Ptr_u32x4(uint64_t(A.ds) + to).v[0] = ds;
      }
    }
  }
}
