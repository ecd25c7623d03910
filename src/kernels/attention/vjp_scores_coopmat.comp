// variants: T=f16 COOPMAT=1 NATIVE_F16=1 SG=32 D=64,128 DV=128 MASK=0 CAUSAL=0,1; T=bf16 COOPMAT=1 BF16_EXT=1 SG=32 D=80 DV=80 MASK=0,1,2 CAUSAL=0,1
//
// vjp_scores.comp with cooperative matrices: 16-bit items, rows aligned to 16
// bytes, head dims in multiples of 16 up to 128, subgroups of 32. Four
// subgroups take 16 queries each and share 64 keys.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/vjp.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

#define WG (4 * SG)
layout(local_size_x = WG) in;

#define BQ 64
#define BK 64
#define S_PITCH 17 // uvec4s a row of 64 floats
#define S_ITEMS (BQ * S_PITCH)

shared uvec4 tile[S_ITEMS]; // q, k, dO and v by turns; then dO v^T
shared uvec4 scores[S_ITEMS];

#define MATRIX_A coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_C                                                              \
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor

uint pack2(float a, float b) {
#ifdef T_IS_bf16
  return uint(f32_to_bf16(a)) | (uint(f32_to_bf16(b)) << 16);
#else
  return uint(f32_to_f16(a)) | (uint(f32_to_f16(b)) << 16);
#endif
}

// 64 rows of `eighths` pieces of 16 bytes into the tile; zeros from `end` on.
void stage(T_PTR x, int64_t pitch, uint first, uint end, uint eighths) {
  for (uint e = gl_LocalInvocationIndex; e < 64 * eighths; e += WG) {
    uint r = e / eighths;
    uint c = e % eighths;
    uvec4 y = uvec4(0);
    if (first + r < end) {
      int64_t at = int64_t(first + r) * pitch + int64_t(c * 8);
      y = Ptr_u32x4(uint64_t(x) + uint64_t(at * 2)).v[0];
    }
    tile[r * (eighths + 1) + c] = y;
  }
}

// The subgroup's 16 rows of a b^T into TO. Ends with nobody reading the tile.
#define PRODUCT(NAME, DIM, TO)                                                \
  void NAME(                                                                  \
      T_PTR a, int64_t a_row, uint a0, uint a_end, T_PTR b, int64_t b_row,    \
      uint b0, uint b_end) {                                                  \
    uint corner = gl_SubgroupID * 16;                                         \
    barrier();                                                                \
    stage(a, a_row, a0, a_end, DIM / 8);                                      \
    barrier();                                                                \
    MATRIX_A am[DIM / 16];                                                    \
    [[unroll]] for (uint d = 0; d < DIM / 16; ++d) {                          \
      coopMatLoad(                                                            \
          am[d], tile, corner * (DIM / 8 + 1) + d * 2, DIM / 8 + 1,           \
          ROW_MAJOR);                                                         \
    }                                                                         \
    barrier();                                                                \
    stage(b, b_row, b0, b_end, DIM / 8);                                      \
    barrier();                                                                \
    MATRIX_C y[BK / 16];                                                      \
    [[unroll]] for (uint j = 0; j < BK / 16; ++j) {                           \
      y[j] = MATRIX_C(0.0);                                                   \
      [[unroll]] for (uint d = 0; d < DIM / 16; ++d) {                        \
        MATRIX_B bm;                                                          \
        coopMatLoad(                                                          \
            bm, tile, j * 16 * (DIM / 8 + 1) + d * 2, DIM / 8 + 1,            \
            COLUMN_MAJOR);                                                    \
        y[j] = coopMatMulAdd(am[d], bm, y[j]);                                \
      }                                                                       \
    }                                                                         \
    barrier();                                                                \
    [[unroll]] for (uint j = 0; j < BK / 16; ++j) {                           \
      coopMatStore(                                                           \
          y[j], TO, corner * S_PITCH + j * 4, S_PITCH, ROW_MAJOR);            \
    }                                                                         \
  }
PRODUCT(multiply_qk, D, scores)
PRODUCT(multiply_cv, DV, tile)

void differentiate(uint group) {
  uint key_tile = group % A.key_tiles;
  uint rest = group / A.key_tiles;
  uint query_tile = rest % A.query_tiles;
  rest /= A.query_tiles;
  uint head = rest % A.heads;
  uint batch = rest / A.heads;
  uint kv_head = head / (A.heads / A.kv_heads);
  uint q0 = A.query0 + query_tile * BQ;
  uint k0 = A.key0 + key_tile * BK;
  uint q_end = A.query0 + A.query_count;
  uint k_end = A.key0 + A.key_count;

  bool skip = all_hidden(q0 + BQ, k0);
  if (!skip) {
    multiply_qk(
        moved(A.q, int64_t(batch) * A.q_batch + int64_t(head) * A.q_head),
        A.q_row, q0, q_end,
        moved(A.k, int64_t(batch) * A.k_batch + int64_t(kv_head) * A.k_head),
        A.k_row, k0, k_end);
    multiply_cv(
        moved(A.cotan, int64_t(batch) * A.c_batch + int64_t(head) * A.c_head),
        A.c_row, q0, q_end,
        moved(A.v, int64_t(batch) * A.v_batch + int64_t(kv_head) * A.v_head),
        A.v_row, k0, k_end);
    barrier();
  }

  // Two lanes a row, 32 keys each, eight at a time: in an order in which they
  // hit different banks.
  uint lane = gl_SubgroupInvocationID;
  uint r = gl_SubgroupID * 16 + lane / 2;
  uint half_row = lane % 2;
  uint query = q0 + r;
  if (query < q_end) {
    Row row = row_of(batch, head, query);
    uint64_t at = (uint64_t(batch * A.heads + head) * A.query_count +
                   (query - A.query0)) * A.pitch;
    for (uint i = 0; i < 4; ++i) {
      uint piece = half_row * 4 + (i + half_row * 2) % 4;
      uint key = k0 + piece * 8;
      uvec4 p = uvec4(0);
      uvec4 ds = uvec4(0);
      if (!skip) {
        [[unroll]] for (uint h = 0; h < 2; ++h) {
          vec4 s = uintBitsToFloat(scores[r * S_PITCH + piece * 2 + h]);
          vec4 dp = uintBitsToFloat(tile[r * S_PITCH + piece * 2 + h]);
          vec2 y[4];
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            uint k = min(key + h * 4 + e, A.keys - 1);
            y[e] = weigh(row, k, s[e], dp[e]);
          }
          [[unroll]] for (uint e = 0; e < 2; ++e) {
            p[h * 2 + e] = pack2(y[e * 2].x, y[e * 2 + 1].x);
            ds[h * 2 + e] = pack2(y[e * 2].y, y[e * 2 + 1].y);
          }
        }
      }
      // Rows are padded to whole pieces; nobody reads the padding.
      if (key < k_end) {
        uint64_t to = (at + (key - A.key0)) * 2;
        Ptr_u32x4(uint64_t(A.p) + to).v[0] = p;
        Ptr_u32x4(uint64_t(A.ds) + to).v[0] = ds;
      }
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.key_tiles * A.query_tiles * A.heads * A.batches) {
    differentiate(group);
  }
}
