// variants: T=f32,f16,bf16 WG=128 LANES=16 NV=1,4 VW=0,1 AXPBY=0 ND=0 GATHER=0 SPLIT=0 BIG=0; T=f32 WG=128 LANES=16 NV=8 VW=0 AXPBY=1 ND=1 GATHER=0 SPLIT=0 BIG=1; T=f32 WG=128 LANES=16 NV=2 VW=0 AXPBY=0 ND=0 GATHER=0,1 SPLIT=1 BIG=0
//
// Thin matrix products, axpy form: y[r, v] = sum over k of w[r, k] x[k, v]
// for up to NV vectors, with r the unit-stride direction of w.
//
// LANES invocations side by side own four rows each; WG / LANES of them share
// out k and are summed through shared memory. Operands as in gemv.comp.
// VW: quads of w are aligned and never straddle the last row.
#extension GL_EXT_control_flow_attributes : enable
#if BIG
#define LARGE
#endif
#include "common/types.glsl"
#include "common/index.glsl"
#include "gemm/batch.glsl"
#include "gemm/vec.glsl"

#if SPLIT
#define Y_PTR Ptr_f32
#define Y_SIZE 4
#else
#define Y_PTR T_PTR
#define Y_SIZE T_SIZE
#endif
#if AXPBY
#define C_POINTER T_PTR c;
#else
#define C_POINTER
#endif

// Mirrors GemvParams in ops/gemm/params.h.
#define ARGS                                                                  \
  T_PTR a; T_PTR b; C_POINTER GATHER_POINTERS Y_PTR y;                        \
  uint rows; uint vectors; uint k; uint row_groups; uint splits;              \
  uint k_split; uint batches; uint pad;                                       \
  Index w_row; Index w_k; Index x_k; Index x_vec; Index y_row; Index y_vec;   \
  Index c_row; Index c_vec; float alpha; float beta; BATCH_ARGS
#include "common/args.glsl"

layout(local_size_x = WG) in;

#define SPREAD (WG / LANES)
#define GROUP_ROWS (LANES * 4)
#define UNROLL 4
shared float sums[SPREAD * GROUP_ROWS];

void multiply(uint group) {
  uint row_group = group % A.row_groups;
  uint outer = group / A.row_groups;
  uint split = outer % A.splits;
  uint batch = outer / A.splits;
  uint lane = gl_LocalInvocationIndex % LANES;
  uint slice = gl_LocalInvocationIndex / LANES;
  uint row0 = row_group * GROUP_ROWS;
  uint row = row0 + lane * 4;

  int64_t ao, bo, co;
  BATCH_OFFSETS(batch, ao, bo, co)
  T_PTR w = MOVED(T, A.a, ao);
  T_PTR x = MOVED(T, A.b, bo);

  vec4 acc[NV];
  [[unroll]] for (uint v = 0; v < NV; ++v) {
    acc[v] = vec4(0.0);
  }

  uint k_begin = split * A.k_split;
  uint k_end = min(A.k, k_begin + A.k_split);
  if (row < A.rows) {
    for (uint k0 = k_begin + slice; k0 < k_end; k0 += SPREAD * UNROLL) {
      vec4 wk[UNROLL];
      [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
        uint k = k0 + u * SPREAD;
        wk[u] = vec4(0.0);
        if (k < k_end) {
#if VW
          wk[u] = load4(w, int64_t(Index(row) + Index(k) * A.w_k));
#else
          [[unroll]] for (uint i = 0; i < 4; ++i) {
            if (row + i < A.rows) {
              wk[u][i] = load(w, Index(row + i) * A.w_row + Index(k) * A.w_k);
            }
          }
#endif
        }
      }
      [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
        uint k = k0 + u * SPREAD;
        if (k < k_end) {
          [[unroll]] for (uint v = 0; v < NV; ++v) {
            Index at = Index(min(v, A.vectors - 1)) * A.x_vec;
            acc[v] += wk[u] * load(x, at + Index(k) * A.x_k);
          }
        }
      }
    }
  }

  int64_t matrix = int64_t(A.rows) * int64_t(A.vectors);
#if SPLIT
  int64_t item = int64_t(split) * int64_t(A.batches) + int64_t(batch);
#else
  int64_t item = int64_t(batch);
#endif
  Y_PTR y = MOVED(Y, A.y, item * matrix);
#if AXPBY
  T_PTR c = MOVED(T, A.c, co);
#endif
  [[unroll]] for (uint v = 0; v < NV; ++v) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      sums[slice * GROUP_ROWS + lane * 4 + i] = acc[v][i];
    }
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < GROUP_ROWS; t += WG) {
      uint r = row0 + t;
      if (r < A.rows && v < A.vectors) {
        float sum = 0.0;
        [[unroll]] for (uint s = 0; s < SPREAD; ++s) {
          sum += sums[s * GROUP_ROWS + t];
        }
#if AXPBY
        sum = A.alpha * sum +
            A.beta * load(c, Index(r) * A.c_row + Index(v) * A.c_vec);
#endif
        store(y, Index(r) * A.y_row + Index(v) * A.y_vec, sum);
      }
    }
    barrier();
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.row_groups * A.splits * A.batches) {
    multiply(group);
  }
}
