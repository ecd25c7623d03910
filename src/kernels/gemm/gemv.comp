// Thin matrix product, dot form: y[r, v] = sum over k of a[r, k] b[k, v] for up
// to NV vectors, with unit stride of a along k.
//
// A workgroup computes ROWS rows; its invocations split k. VA, VB: 16-byte
// loads.
#include "gemm/thin.glsl"

#define VALUES (ROWS * NV)
shared float partial[(WG / 4) * VALUES];

#if VA
#define STEP VEC16
#else
#define STEP 1
#endif

void multiply(uint tile) {
  uint row0 = tile * ROWS;
  T_PTR w[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    // Rows beyond the last repeat it and are not stored.
    uint row = min(row0 + r, A.M - 1);
    w[r] = MOVED(T, base_a, int64_t(row) * int64_t(A.a_row));
  }

  float acc[VALUES];
  [[unroll]] for (uint i = 0; i < VALUES; ++i) {
    acc[i] = 0.0;
  }

  for (uint k = k_begin + gl_LocalInvocationIndex * STEP; k < k_end;
       k += WG * STEP) {
#if VA
    float wk[ROWS * STEP];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      Vec16 q = load16(w[r], int64_t(k));
      UNPACK16(q, wk, r * STEP)
    }
#else
    float wk[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      wk[r] = load(w[r], Index(k) * A.a_col);
    }
#endif
    [[unroll]] for (uint v = 0; v < NV; ++v) {
      Index at = Index(min(v, A.N - 1)) * A.b_col;
      float xk[STEP];
#if VB && VA
      Vec16 q = load16(base_b, int64_t(at) + int64_t(k));
      UNPACK16(q, xk, 0)
#else
      [[unroll]] for (uint s = 0; s < STEP; ++s) {
        xk[s] = load(base_b, at + Index(k + s) * A.b_row);
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
  if (t < VALUES && row < A.M && v < A.N) {
    float sum = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      sum += partial[s * VALUES + t];
    }
    put(y_matrix(), row, v, sum);
  }
}
