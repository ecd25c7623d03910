// variants: T=f16 COOPMAT=1 NATIVE_F16=1 SG=32 BM=128 BN=128 WM=4 WN=2 A_T=0 B_T=0,1 VA=1 VB=1 AXPBY=0 ND=0 GATHER=0 SPLIT=0 BIG=0; T=bf16 COOPMAT=1 BF16_EXT=1 SG=32 BM=64 BN=64 WM=2 WN=2 A_T=0,1 B_T=0 VA=0 VB=0 AXPBY=1 ND=1 GATHER=0 SPLIT=0 BIG=1; T=bf16 COOPMAT=1 BF16_EXT=1 SG=32 BM=64 BN=64 WM=2 WN=2 A_T=0 B_T=1 VA=1 VB=1 AXPBY=0 ND=0 GATHER=0,1 SPLIT=1 BIG=0
//
// Tiled matrix product with cooperative matrices, 16-bit floats in and float
// accumulators; otherwise as gemm.comp.
//
// WM x WN subgroups of SG invocations share a BM x BN tile. Tiles of a and b
// lie in shared memory as they lie in memory, eight items a uvec4: k is the
// fast direction of a unless A_T, of b if B_T; the layout of the matrix loads
// does the transposing. VA, VB: aligned groups of eight, none across an edge.
#if BIG
#define LARGE
#endif
#include "common/types.glsl"
#include "common/index.glsl"
#include "gemm/batch.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif
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

#define ARGS                                                                  \
  T_PTR a; T_PTR b; C_POINTER GATHER_POINTERS Y_PTR y;                        \
  uint m; uint n; uint k; uint tiles_m; uint tiles_n; uint splits;            \
  uint k_split; uint batches;                                                 \
  Index a_row; Index a_col; Index b_row; Index b_col; Index c_row;            \
  Index c_col; float alpha; float beta; BATCH_ARGS
#include "common/args.glsl"

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

uint64_t base_a, base_b;
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
FETCH8(fetch_a, base_a, VA, A_T, A.a_row, A.a_col)
FETCH8(fetch_b, base_b, VB, B_T, A.b_row, A.b_col)

void fetch(uint row0, uint col0, uint k0, uint k_end) {
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

void multiply(uint group) {
  // Bands of eight tile rows, so that neighbouring groups share b in cache.
  uint per_matrix = A.tiles_m * A.tiles_n;
  uint tile = group % per_matrix;
  uint outer = group / per_matrix;
  uint split = outer % A.splits;
  uint batch = outer / A.splits;
  uint band = tile / (8 * A.tiles_n);
  uint band_rows = min(8, A.tiles_m - band * 8);
  uint in_band = tile - band * 8 * A.tiles_n;
  uint row0 = (band * 8 + in_band % band_rows) * BM;
  uint col0 = in_band / band_rows * BN;

  int64_t ao, bo, co;
  BATCH_OFFSETS(batch, ao, bo, co)
  base_a = uint64_t(A.a) + uint64_t(ao * 2);
  base_b = uint64_t(A.b) + uint64_t(bo * 2);

  uint k_begin = split * A.k_split;
  uint k_end = min(A.k, k_begin + A.k_split);
  uint wm = gl_SubgroupID % WM;
  uint wn = gl_SubgroupID / WM;

  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
      acc[FM * FN];
  [[unroll]] for (uint i = 0; i < FM * FN; ++i) {
    acc[i] =
        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  }

  fetch(row0, col0, k_begin, k_end);
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    stash();
    barrier();
    if (k0 + BK < k_end) {
      fetch(row0, col0, k0 + BK, k_end);
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

  int64_t matrix = int64_t(A.m) * int64_t(A.n);
#if SPLIT
  Y_PTR base_y = MOVED(
      Y, A.y,
      (int64_t(split) * int64_t(A.batches) + int64_t(batch)) * matrix);
#else
  Y_PTR base_y = MOVED(Y, A.y, int64_t(batch) * matrix);
#endif
#if AXPBY
  T_PTR base_c = MOVED(T, A.c, co);
#endif
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
          float v = stage[corner + at];
#if AXPBY
          v = A.alpha * v +
              A.beta * load(base_c, Index(r) * A.c_row + Index(c) * A.c_col);
#endif
          store(base_y, Index(r) * Index(A.n) + Index(c), v);
        }
      }
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.tiles_m * A.tiles_n * A.splits * A.batches) {
    multiply(group);
  }
}
