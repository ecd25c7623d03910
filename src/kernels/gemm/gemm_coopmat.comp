// Tiled matrix product with cooperative matrices, 16-bit floats in and float
// accumulators; otherwise as gemm.comp.
//
// WM x WN subgroups of SG invocations share a BM x BN tile. Tiles of a and b
// lie in shared memory as they lie in memory, eight items a uvec4: k is the
// fast direction of a unless A_T, of b if B_T; the layout of the matrix loads
// does the transposing. VA, VB: aligned groups of eight, none across an edge.
#include "gemm/product.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

#define BK 32
#define WG (WM * WN * SG)
#define FM (BM / (16 * WM)) // fragments of a subgroup
#define FN (BN / (16 * WN))
// Rows of a tile in uvec4, padded by one against bank conflicts.
#if A_T
#define ROWS_A BK
#define WIDTH_A (BM / 8)
#define LAYOUT_A gl_CooperativeMatrixLayoutColumnMajor
#else
#define ROWS_A BM
#define WIDTH_A (BK / 8)
#define LAYOUT_A gl_CooperativeMatrixLayoutRowMajor
#endif
#if B_T
#define ROWS_B BN
#define WIDTH_B (BK / 8)
#define LAYOUT_B gl_CooperativeMatrixLayoutColumnMajor
#else
#define ROWS_B BK
#define WIDTH_B (BN / 8)
#define LAYOUT_B gl_CooperativeMatrixLayoutRowMajor
#endif
#define PITCH_A (WIDTH_A + 1)
#define PITCH_B (WIDTH_B + 1)
#define LOADS_A (BM * BK / 8 / WG)
#define LOADS_B (BN * BK / 8 / WG)

layout(local_size_x = WG) in;

shared uvec4 tile_a[ROWS_A * PITCH_A];
shared uvec4 tile_b[ROWS_B * PITCH_B];
shared float stage[WM * WN * 256];

uvec4 next_a[LOADS_A];
uvec4 next_b[LOADS_B];

// Eight items from (r, c) on, along r if T, else along c; zero outside.
#define FETCH8(NAME, BASE, VEC, T, ROW_STRIDE, COL_STRIDE)                    \
  uvec4 NAME(uint r, uint c, uint rows, uint cols) {                          \
    uvec4 q = uvec4(0);                                                       \
    if (VEC != 0) {                                                           \
      if (r < rows && c < cols) {                                             \
        Index at = Index(r) * ROW_STRIDE + Index(c) * COL_STRIDE;             \
        q = Ptr_u32x4(BASE + uint64_t(int64_t(at) * 2)).v[0];                 \
      }                                                                       \
    } else {                                                                  \
      [[unroll]] for (uint e = 0; e < 8; ++e) {                               \
        uint rr = T != 0 ? r + e : r;                                         \
        uint cc = T != 0 ? c : c + e;                                         \
        if (rr < rows && cc < cols) {                                         \
          Index at = Index(rr) * ROW_STRIDE + Index(cc) * COL_STRIDE;         \
          uint x = uint(Ptr_u16(BASE + uint64_t(int64_t(at) * 2)).v[0]);      \
          q[e / 2] |= x << (16 * (e % 2));                                    \
        }                                                                     \
      }                                                                       \
    }                                                                         \
    return q;                                                                 \
  }
FETCH8(fetch_a, uint64_t(base_a), VA, A_T, A.a_row, A.a_col)
FETCH8(fetch_b, uint64_t(base_b), VB, B_T, A.b_row, A.b_col)

void fetch(uint row0, uint col0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    uint slow = e / WIDTH_A;
    uint fast = e % WIDTH_A * 8;
#if A_T
    next_a[i] = fetch_a(row0 + fast, k0 + slow, A.m, k_end);
#else
    next_a[i] = fetch_a(row0 + slow, k0 + fast, A.m, k_end);
#endif
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
    uint slow = e / WIDTH_B;
    uint fast = e % WIDTH_B * 8;
#if B_T
    next_b[i] = fetch_b(k0 + fast, col0 + slow, k_end, A.n);
#else
    next_b[i] = fetch_b(k0 + slow, col0 + fast, k_end, A.n);
#endif
  }
}

void stash() {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    tile_a[e / WIDTH_A * PITCH_A + e % WIDTH_A] = next_a[i];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
    tile_b[e / WIDTH_B * PITCH_B + e % WIDTH_B] = next_b[i];
  }
}

void multiply(uint tile) {
  uvec2 origin = tile_at(tile);
  uint row0 = origin.x * BM, col0 = origin.y * BN;
  uint wm = gl_SubgroupID % WM;
  uint wn = gl_SubgroupID / WM;

  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
      acc[FM * FN];
  [[unroll]] for (uint i = 0; i < FM * FN; ++i) {
    acc[i] =
        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  }

  fetch(row0, col0, k_begin);
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < k_end) {
      fetch(row0, col0, k0 + BK);
    }
    [[unroll]] for (uint kk = 0; kk < BK; kk += 16) {
      coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> x[FM];
      coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> w;
      [[unroll]] for (uint i = 0; i < FM; ++i) {
        uint r = (wm * FM + i) * 16;
#if A_T
        uint at = kk * PITCH_A + r / 8;
#else
        uint at = r * PITCH_A + kk / 8;
#endif
        coopMatLoad(x[i], tile_a, at, PITCH_A, LAYOUT_A);
      }
      [[unroll]] for (uint j = 0; j < FN; ++j) {
        uint c = (wn * FN + j) * 16;
#if B_T
        uint at = c * PITCH_B + kk / 8;
#else
        uint at = kk * PITCH_B + c / 8;
#endif
        coopMatLoad(w, tile_b, at, PITCH_B, LAYOUT_B);
        [[unroll]] for (uint i = 0; i < FM; ++i) {
          acc[i * FN + j] = coopMatMulAdd(x[i], w, acc[i * FN + j]);
        }
      }
    }
  }

  Y_PTR y = y_matrix();
  // A fragment at a time through the subgroup's own corner of shared memory:
  // where its elements lie is not known otherwise.
  uint corner = gl_SubgroupID * 256;
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint j = 0; j < FN; ++j) {
      barrier();
      coopMatStore(
          acc[i * FN + j], stage, corner, 16,
          gl_CooperativeMatrixLayoutRowMajor);
      barrier();
      uint r0 = row0 + (wm * FM + i) * 16;
      uint c0 = col0 + (wn * FN + j) * 16;
      [[unroll]] for (uint e = 0; e < 256; e += SG) {
        uint at = e + gl_SubgroupInvocationID;
        uint r = r0 + at / 16;
        uint c = c0 + at % 16;
        if (r < A.m && c < A.n) {
          put(y, r, c, stage[corner + at]);
        }
      }
    }
  }
}
