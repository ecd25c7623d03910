// Tiled matrix product with cooperative matrices, 16-bit floats in and float
// accumulators; otherwise as gemm.comp.
//
// VA, VB: aligned groups of eight, none across an edge.
#include "gemm/product.glsl"
#include "gemm/matrix_tile.glsl"

#define LOADS_B (BN * BK / 8 / WG)
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
  STASH(tile_a, next_a, LOADS_A, WIDTH_A)
  STASH(tile_b, next_b, LOADS_B, WIDTH_B)
}

void multiply(uint tile) {
  uvec2 origin = tile_at(tile);
  uint row0 = origin.x * BM, col0 = origin.y * BN;
  uint wm = gl_SubgroupID % WM;
  uint wn = gl_SubgroupID / WM;

  MATRIX_C acc[FM * FN];
  CLEAR_FRAGMENTS(acc)
  fetch(row0, col0, k_begin);
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < k_end) {
      fetch(row0, col0, k0 + BK);
    }
    MULTIPLY_TILES(acc, wm, wn)
  }

  Y_PTR y = y_matrix();
  // A fragment at a time through the subgroup's own corner of shared memory:
  // where its elements lie is not known otherwise.
  uint corner = gl_SubgroupID * 256;
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint j = 0; j < FN; ++j) {
      barrier();
      coopMatStore(acc[i * FN + j], stage, corner, 16, ROW_MAJOR);
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
