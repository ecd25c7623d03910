// Thin matrix product, axpy form: y[r, v] = sum over k of a[r, k] b[k, v] for
// up to NV vectors, with unit stride of a along r.
//
// LANES adjacent invocations own four rows each; WG / LANES of them split k and
// are summed through shared memory. VA: quads of a are aligned and never cross
// the last row.
#include "gemm/thin.glsl"

#define SPREAD (WG / LANES)
#define GROUP_ROWS (LANES * 4)
#define UNROLL 4
shared float sums[SPREAD * GROUP_ROWS];

void multiply(uint tile) {
  uint lane = gl_LocalInvocationIndex % LANES;
  uint slice = gl_LocalInvocationIndex / LANES;
  uint row0 = tile * GROUP_ROWS;
  uint row = row0 + lane * 4;

  vec4 acc[NV];
  [[unroll]] for (uint v = 0; v < NV; ++v) {
    acc[v] = vec4(0.0);
  }

  if (row < A.M) {
    for (uint k0 = k_begin + slice; k0 < k_end; k0 += SPREAD * UNROLL) {
      vec4 wk[UNROLL];
      [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
        uint k = k0 + u * SPREAD;
        wk[u] = vec4(0.0);
        if (k < k_end) {
#if VA
          wk[u] = load4(base_a, int64_t(Index(row) + Index(k) * A.a_col));
#else
          [[unroll]] for (uint i = 0; i < 4; ++i) {
            if (row + i < A.M) {
              wk[u][i] = load(
                  base_a, Index(row + i) * A.a_row + Index(k) * A.a_col);
            }
          }
#endif
        }
      }
      [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
        uint k = k0 + u * SPREAD;
        if (k < k_end) {
          [[unroll]] for (uint v = 0; v < NV; ++v) {
            Index at = Index(min(v, A.N - 1)) * A.b_col;
            acc[v] += wk[u] * load(base_b, at + Index(k) * A.b_row);
          }
        }
      }
    }
  }

  Y_PTR y = y_matrix();
  [[unroll]] for (uint v = 0; v < NV; ++v) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      sums[slice * GROUP_ROWS + lane * 4 + i] = acc[v][i];
    }
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < GROUP_ROWS; t += WG) {
      uint r = row0 + t;
      if (r < A.M && v < A.N) {
        float sum = 0.0;
        [[unroll]] for (uint s = 0; s < SPREAD; ++s) {
          sum += sums[s * GROUP_ROWS + t];
        }
        put(y, r, v, sum);
      }
    }
    barrier();
  }
}
