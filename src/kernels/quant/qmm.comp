// variants: T=f32,f16,bf16 BITS=4 GROUP=64 FP=0 GLOBAL=0 BATCH=0 TRANSPOSE=0,1 SORTED=0 BM=64 BN=64 TM=4 TN=4 ; T=f32 BITS=4 GROUP=32 FP=0 GLOBAL=0 BATCH=0 TRANSPOSE=1 SORTED=0 BM=64 BN=128 TM=16 TN=16 ; T=bf16 BITS=1,2,3,5,6,8 GROUP=32 FP=0 GLOBAL=0 BATCH=0,1 TRANSPOSE=1 SORTED=0 BM=32 BN=32 TM=4 TN=4 ; T=bf16 BITS=4 GROUP=16 FP=1 GLOBAL=0,1 BATCH=2 TRANSPOSE=0,1 SORTED=0,1 BM=32 BN=64 TM=8 TN=4
// y = x @ W^T (TRANSPOSE) or x @ W for many rows of x: tiles of x and of
// dequantized weights in shared memory, TM x TN outputs an invocation.
//
// SORTED: product i is one row of x and the matrix rhs[i], and equal matrices
// stand together. A tile of rows makes one pass over K for each matrix in it.
#include "common/loops.glsl"
#include "quant/operands.glsl"

#define BK 32
#define NX (BN / TN)
#define NY (BM / TM)
#define WG (NX * NY)
layout(local_size_x = WG) in;

shared vec4 xs[BK][BM / 4];
shared vec4 ws[BK][BN / 4];
#if SORTED
shared uint matrix_of[BM];
#endif

void load_x_tile(uint m0, uint begin, uint end, uint k0) {
  for (uint u = gl_LocalInvocationID.x; u < BM * (BK / 8); u += WG) {
    uint m = u / (BK / 8);
    uint k = (u % (BK / 8)) * 8u;
    bool inside = m0 + m >= begin && m0 + m < end;
    uint64_t at = uint64_t(0);
    if (inside) {
#if SORTED
      at = uint64_t(load(A.lhs, m0 + m)) * uint64_t(A.x_matrix);
#else
      at = uint64_t(int64_t(m0 + m) * A.x_row);
#endif
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      float v = 0.0;
      if (inside && k0 + k + i < A.K) {
        v = load(x_base, at + (k0 + k + i));
      }
      xs[k + i][m >> 2][m & 3u] = v;
    }
  }
}

void load_w_tile(uint n0, uint k0) {
#if TRANSPOSE
  for (uint u = gl_LocalInvocationID.x; u < BN * (BK / 8); u += WG) {
    uint n = u / (BK / 8);
    uint k = (u % (BK / 8)) * 8u;
    uint row = n0 + n;
    uint at = k0 + k;
    bool inside = row < A.N && at < A.K;
    uint64_t words = uint64_t(row) * (A.K / 16u * BITS / 2u);
    uint64_t group = uint64_t(row) * (A.K / GROUP) + at / GROUP;
#else
  for (uint u = gl_LocalInvocationID.x; u < BK * (BN / 8); u += WG) {
    uint n = (u % (BN / 8)) * 8u;
    uint k = u / (BN / 8);
    uint row = k0 + k;
    uint at = n0 + n;
    bool inside = row < A.K && at < A.N;
    uint64_t words = uint64_t(row) * (A.N / 16u * BITS / 2u);
    uint64_t group = uint64_t(row) * (A.N / GROUP) + at / GROUP;
#endif
    uvec2 codes = uvec2(0);
    float scale = 0.0;
    float bias = 0.0;
    if (inside) {
      codes = load_codes8(WORDS_AT(w_base, words), at / 8u);
      scale = load_scale(scale_base, group);
#if !FP
      bias = load(bias_base, group);
#endif
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      float v = scale * code_value(code8(codes, i)) + bias;
#if TRANSPOSE
      ws[k + i][n >> 2][n & 3u] = v;
#else
      ws[k][(n + i) >> 2][i & 3u] = v;
#endif
    }
  }
}

void main() {
  uint group = min(group_index(), A.groups - 1u);
  bool live = group_index() < A.groups;
  uint n0 = group % A.n_tiles * BN;
  uint m0 = group / A.n_tiles % A.m_tiles * BM;
  uint tx = gl_LocalInvocationID.x % NX;
  uint ty = gl_LocalInvocationID.x / NX;

#if SORTED
  uint last = min(m0 + BM, A.M);
  for (uint i = gl_LocalInvocationID.x; i < BM; i += WG) {
    matrix_of[i] = load(A.rhs, min(m0 + i, A.M - 1u));
  }
  barrier();
  uint begin = m0;
  // Each turn takes one of the tile's rows, or more.
  BOUNDED_WHILE(begin < last, BM) {
    uint matrix = matrix_of[begin - m0];
    uint end = begin + 1u;
    BOUNDED_WHILE(end < last && matrix_of[end - m0] == matrix, BM) {
      ++end;
    }
    locate_matrix(matrix);
#else
  {
    uint begin = m0;
    uint end = A.M;
    locate(group / A.n_tiles / A.m_tiles);
#endif
    vec4 acc[TM][TN / 4];
    [[unroll]] for (uint i = 0; i < TM; ++i) {
      [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
        acc[i][j] = vec4(0.0);
      }
    }
    for (uint k0 = 0; k0 < A.K; k0 += BK) {
      load_x_tile(m0, begin, end, k0);
      load_w_tile(n0, k0);
      barrier();
      for (uint k = 0; k < BK; ++k) {
        vec4 w[TN / 4];
        [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
          w[j] = ws[k][tx + j * NX];
        }
        [[unroll]] for (uint i = 0; i < TM / 4; ++i) {
          vec4 x = xs[k][ty + i * NY];
          [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
            acc[4 * i][j] += x.x * w[j];
            acc[4 * i + 1][j] += x.y * w[j];
            acc[4 * i + 2][j] += x.z * w[j];
            acc[4 * i + 3][j] += x.w * w[j];
          }
        }
      }
      barrier();
    }
    [[unroll]] for (uint i = 0; i < TM; ++i) {
      uint m = m0 + (ty + i / 4 * NY) * 4u + i % 4;
      if (live && m >= begin && m < end) {
        [[unroll]] for (uint j = 0; j < TN / 4; ++j) {
          [[unroll]] for (uint c = 0; c < 4; ++c) {
            uint n = n0 + (tx + j * NX) * 4u + c;
            if (n < A.N) {
              store(y_base, uint64_t(m) * A.N + n, acc[i][j][c] * y_factor);
            }
          }
        }
      }
    }
#if SORTED
    begin = end;
#endif
  }
}
