// variants: T=f32,f16,bf16 WG=64 ROWS=4 NV=1,4 VW=0,1 VX=0,1 AXPBY=0 ND=0 GATHER=0 SPLIT=0 BIG=0; T=f32 WG=32 ROWS=4 NV=8 VW=0 VX=0 AXPBY=1 ND=1 GATHER=0 SPLIT=0 BIG=1; T=f32 WG=32 ROWS=4 NV=2 VW=0 VX=0 AXPBY=0 ND=0 GATHER=0,1 SPLIT=1 BIG=0
//
// Thin matrix products, dot form: y[r, v] = sum over k of w[r, k] x[k, v] for
// up to NV vectors, with k the unit-stride direction of w.
//
// A workgroup makes ROWS rows; its invocations share out k. With SWAP-ped
// operands (few rows of a) w is b and x is a: the host only exchanges the
// pointers and strides; `a` below is always w, `b` is x.
// VW, VX: 16-byte loads of w, x. SPLIT: see gemm.comp.
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

#define VALUES (ROWS * NV)
shared float partial[(WG / 4) * VALUES];

#if VW
#define STEP VEC16
#else
#define STEP 1
#endif

void multiply(uint group) {
  uint row_group = group % A.row_groups;
  uint outer = group / A.row_groups;
  uint split = outer % A.splits;
  uint batch = outer / A.splits;
  uint row0 = row_group * ROWS;

  int64_t ao, bo, co;
  BATCH_OFFSETS(batch, ao, bo, co)
  T_PTR x = MOVED(T, A.b, bo);
  T_PTR w[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    // Rows past the end repeat the last one and are not stored.
    uint row = min(row0 + r, A.rows - 1);
    w[r] = MOVED(T, A.a, ao + int64_t(row) * int64_t(A.w_row));
  }

  float acc[VALUES];
  [[unroll]] for (uint i = 0; i < VALUES; ++i) {
    acc[i] = 0.0;
  }

  uint k_begin = split * A.k_split;
  uint k_end = min(A.k, k_begin + A.k_split);
  for (uint k = k_begin + gl_LocalInvocationIndex * STEP; k < k_end;
       k += WG * STEP) {
#if VW
    float wk[ROWS * STEP];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      Vec16 q = load16(w[r], int64_t(k));
      UNPACK16(q, wk, r * STEP)
    }
#else
    float wk[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      wk[r] = load(w[r], Index(k) * A.w_k);
    }
#endif
    [[unroll]] for (uint v = 0; v < NV; ++v) {
      Index at = Index(min(v, A.vectors - 1)) * A.x_vec;
      float xk[STEP];
#if VX && VW
      Vec16 q = load16(x, int64_t(at) + int64_t(k));
      UNPACK16(q, xk, 0)
#else
      [[unroll]] for (uint s = 0; s < STEP; ++s) {
        xk[s] = load(x, at + Index(k + s) * A.x_k);
      }
#endif
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint s = 0; s < STEP; ++s) {
          acc[v * ROWS + r] =
              fma(wk[r * STEP + s], xk[s], acc[v * ROWS + r]);
        }
      }
    }
  }

  [[unroll]] for (uint i = 0; i < VALUES; ++i) {
    float sum = subgroupAdd(acc[i]);
    if (subgroupElect()) {
      partial[gl_SubgroupID * VALUES + i] = sum;
    }
  }
  barrier();

  uint t = gl_LocalInvocationIndex;
  uint row = row0 + t % ROWS;
  uint v = t / ROWS;
  if (t < VALUES && row < A.rows && v < A.vectors) {
    float sum = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      sum += partial[s * VALUES + t];
    }
    int64_t matrix = int64_t(A.rows) * int64_t(A.vectors);
#if SPLIT
    int64_t item = int64_t(split) * int64_t(A.batches) + int64_t(batch);
#else
    int64_t item = int64_t(batch);
#endif
#if AXPBY
    T_PTR c = MOVED(T, A.c, co);
    sum = A.alpha * sum +
        A.beta * load(c, Index(row) * A.c_row + Index(v) * A.c_vec);
#endif
    Y_PTR y = MOVED(Y, A.y, item * matrix);
    store(y, Index(row) * A.y_row + Index(v) * A.y_vec, sum);
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.row_groups * A.splits * A.batches) {
    multiply(group);
  }
}
