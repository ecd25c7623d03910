// y = a b^T by VK_KHR_cooperative_matrix: a is (m, k), b (n, k), y (m, n), all
// row-major; sizes are multiples of the tile. WM x WN subgroups of 32 share a
// BM x BN tile in shared memory, BUFFERS deep.
#ifdef BF16_EXT
#define Item bfloat16_t
#else
#define Item float16_t
#endif
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Words {
  uvec4 v[];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Items {
  Item v[];
};
layout(push_constant, scalar) uniform Push {
  Words a;
  Words b;
  Items y;
  uint m, n, k;
} A;

#define SG 32
#define WG (WM * WN * SG)
#define FM (BM / (16 * WM))
#define FN (BN / (16 * WN))
#define WIDTH (BK / 8)
#define PITCH (WIDTH + 1)
#define LOADS_A (BM * WIDTH / WG)
#define LOADS_B (BN * WIDTH / WG)

layout(local_size_x = WG) in;

shared uvec4 tile_a[BUFFERS * BM * PITCH];
shared uvec4 tile_b[BUFFERS * BN * PITCH];

uvec4 next_a[LOADS_A];
uvec4 next_b[LOADS_B];

void fetch(uint row0, uint col0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  uint pitch = A.k / 8;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    next_a[i] = A.a.v[(row0 + e / WIDTH) * pitch + k0 / 8 + e % WIDTH];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
    next_b[i] = A.b.v[(col0 + e / WIDTH) * pitch + k0 / 8 + e % WIDTH];
  }
}

void stash(uint buf) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    tile_a[buf * BM * PITCH + e / WIDTH * PITCH + e % WIDTH] = next_a[i];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
    tile_b[buf * BN * PITCH + e / WIDTH * PITCH + e % WIDTH] = next_b[i];
  }
}

// acc += the product of the tiles in buffer `buf`.
#define MULTIPLY(buf)                                                         \
  [[unroll]] for (uint kk = 0; kk < BK; kk += 16) {                           \
    coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> x[FM];             \
    coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> w;                 \
    [[unroll]] for (uint i = 0; i < FM; ++i) {                                \
      coopMatLoad(                                                            \
          x[i], tile_a,                                                       \
          buf * BM * PITCH + (wm * FM + i) * 16 * PITCH + kk / 8, PITCH,      \
          gl_CooperativeMatrixLayoutRowMajor);                                \
    }                                                                         \
    [[unroll]] for (uint j = 0; j < FN; ++j) {                                \
      coopMatLoad(                                                            \
          w, tile_b,                                                          \
          buf * BN * PITCH + (wn * FN + j) * 16 * PITCH + kk / 8, PITCH,      \
          gl_CooperativeMatrixLayoutColumnMajor);                             \
      [[unroll]] for (uint i = 0; i < FM; ++i) {                              \
        acc[i * FN + j] = coopMatMulAdd(x[i], w, acc[i * FN + j]);            \
      }                                                                       \
    }                                                                         \
  }

void main() {
  uint tiles_m = A.m / BM, tiles_n = A.n / BN;
  uint group = gl_WorkGroupID.x;
  uint band = group / (8 * tiles_n);
  uint band_rows = min(8, tiles_m - band * 8);
  uint in_band = group - band * 8 * tiles_n;
  uint row0 = (band * 8 + in_band % band_rows) * BM;
  uint col0 = in_band / band_rows * BN;
  uint wm = gl_SubgroupID % WM, wn = gl_SubgroupID / WM;

  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> acc[FM * FN];
  [[unroll]] for (uint i = 0; i < FM * FN; ++i) {
    acc[i] =
        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  }
  fetch(row0, col0, 0);
#if BUFFERS == 2
  // A tile is loaded two turns ahead and stored one turn ahead: a barrier a
  // turn, and loads have a whole turn to arrive. BK divides k twice.
  stash(0);
  fetch(row0, col0, BK);
  for (uint k0 = 0; k0 < A.k; k0 += 2 * BK) {
    barrier();
    stash(1);
    fetch(row0, col0, min(k0 + 2 * BK, A.k - BK));
    MULTIPLY(0)
    barrier();
    stash(0);
    fetch(row0, col0, min(k0 + 3 * BK, A.k - BK));
    MULTIPLY(1)
  }
#else
  for (uint k0 = 0; k0 < A.k; k0 += BK) {
    barrier();
    stash(0);
    barrier();
    if (k0 + BK < A.k) {
      fetch(row0, col0, k0 + BK);
    }
    MULTIPLY(0)
  }
#endif
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint j = 0; j < FN; ++j) {
      coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> r =
          coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(
              acc[i * FN + j]);
      uint at = (row0 + (wm * FM + i) * 16) * A.n + col0 + (wn * FN + j) * 16;
      coopMatStore(
          r, A.y.v, at, A.n, gl_CooperativeMatrixLayoutRowMajor);
    }
  }
}
