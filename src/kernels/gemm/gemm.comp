// variants: T=f32,f16,bf16 BM=64 BN=64 BK=16 TM=4 TN=4 A_T=0 B_T=1 VA=1 VB=1 AXPBY=0 ND=0 GATHER=0 SPLIT=0 BIG=0 PREFETCH=1; T=f32,c64 BM=32 BN=32 BK=16 TM=4 TN=4 A_T=0,1 B_T=0,1 VA=0 VB=0 AXPBY=1 ND=1 GATHER=0 SPLIT=0 BIG=0,1 PREFETCH=0,1; T=f32 BM=32 BN=32 BK=16 TM=4 TN=4 A_T=0 B_T=0 VA=0 VB=0 AXPBY=0 ND=0 GATHER=0,1 SPLIT=1 BIG=0 PREFETCH=1
//
// Tiled matrix product, y = alpha * a b + beta * c, for any strides.
//
// A workgroup makes a BM x BN tile of y; an invocation TM x TN of it, in
// pieces of four neighbours. Tiles of a (BM x BK) and b (BK x BN) pass through
// shared memory as floats (vec2 for complex64); with PREFETCH the next pair is
// fetched into registers while the present one is used.
// A_T: a's rows are the unit-stride direction. B_T: b's k is.
// VA, VB: quads of a, b are aligned and never straddle an edge.
// SPLIT: y is float (or complex) partial sums, laid out [split][batch][m][n].
#extension GL_EXT_control_flow_attributes : enable
#if BIG
#define LARGE
#endif
#include "common/types.glsl"
#include "common/index.glsl"
#include "gemm/batch.glsl"
#if VA || VB
#include "gemm/vec.glsl"
#endif

#if T_KIND == KIND_COMPLEX
#define Acc vec2
#define ZERO vec2(0.0)
vec2 FMA(vec2 x, vec2 y, vec2 z) {
  return z + vec2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}
#define PART_PTR Ptr_c64
#define PART_SIZE 8
#else
#define Acc float
#define ZERO 0.0
#define FMA fma
#define PART_PTR Ptr_f32
#define PART_SIZE 4
#endif

#if PREFETCH
#define ROLLED
#else
#define ROLLED [[dont_unroll]]
#endif

#if SPLIT
#define Y_PTR PART_PTR
#define Y_SIZE PART_SIZE
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

#define GX (BN / TN)
#define GY (BM / TM)
#define THREADS (GX * GY)
#define MQ (TM / 4)
#define NQ (TN / 4)
#define ROW_A (BM + 4)
#define ROW_B (BN + 4)
#define LOADS_A (BM * BK / THREADS)
#define LOADS_B (BK * BN / THREADS)

layout(local_size_x = THREADS) in;

shared Acc tile_a[BK * ROW_A];
shared Acc tile_b[BK * ROW_B];
#if !PREFETCH
shared Acc tile_y[BM * BN];
#endif

T_PTR base_a, base_b;
#if PREFETCH
Acc next_a[LOADS_A];
Acc next_b[LOADS_B];
#endif

// Item e of a tile, for consecutive invocations along the unit stride.
#if A_T
#define A_ROW(e) ((e) % BM)
#define A_K(e) ((e) / BM)
#else
#define A_ROW(e) ((e) / BK)
#define A_K(e) ((e) % BK)
#endif
#if B_T
#define B_K(e) ((e) % BK)
#define B_COL(e) ((e) / BK)
#else
#define B_K(e) ((e) / BN)
#define B_COL(e) ((e) % BN)
#endif

#if PREFETCH
void fetch(uint row0, uint col0, uint k0, uint k_end) {
  uint t = gl_LocalInvocationIndex;
#if VA
  [[unroll]] for (uint i = 0; i < LOADS_A / 4; ++i) {
    uint e = (t + i * THREADS) * 4;
    uint r = row0 + A_ROW(e), k = k0 + A_K(e);
    vec4 q = vec4(0.0);
    if (r < A.m && k < k_end) {
      q = load4(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
    }
    next_a[i * 4] = q.x;
    next_a[i * 4 + 1] = q.y;
    next_a[i * 4 + 2] = q.z;
    next_a[i * 4 + 3] = q.w;
  }
#else
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * THREADS;
    uint r = row0 + A_ROW(e), k = k0 + A_K(e);
    next_a[i] = ZERO;
    if (r < A.m && k < k_end) {
      next_a[i] = load(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
    }
  }
#endif
#if VB
  [[unroll]] for (uint i = 0; i < LOADS_B / 4; ++i) {
    uint e = (t + i * THREADS) * 4;
    uint k = k0 + B_K(e), c = col0 + B_COL(e);
    vec4 q = vec4(0.0);
    if (c < A.n && k < k_end) {
      q = load4(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
    }
    next_b[i * 4] = q.x;
    next_b[i * 4 + 1] = q.y;
    next_b[i * 4 + 2] = q.z;
    next_b[i * 4 + 3] = q.w;
  }
#else
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * THREADS;
    uint k = k0 + B_K(e), c = col0 + B_COL(e);
    next_b[i] = ZERO;
    if (c < A.n && k < k_end) {
      next_b[i] = load(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
    }
  }
#endif
}

void stash() {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
#if VA
    uint e = (t + i / 4 * THREADS) * 4 + i % 4;
#else
    uint e = t + i * THREADS;
#endif
    tile_a[A_K(e) * ROW_A + A_ROW(e)] = next_a[i];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
#if VB
    uint e = (t + i / 4 * THREADS) * 4 + i % 4;
#else
    uint e = t + i * THREADS;
#endif
    tile_b[B_K(e) * ROW_B + B_COL(e)] = next_b[i];
  }
}

#else
// Straight into shared memory, in rolled loops: where the compiler is slow and
// nothing hides latency anyway (software devices).
void stage_tiles(uint row0, uint col0, uint k0, uint k_end) {
  uint t = gl_LocalInvocationIndex;
  [[dont_unroll]] for (uint e = t; e < BM * BK; e += THREADS) {
    uint r = row0 + A_ROW(e), k = k0 + A_K(e);
    Acc x = ZERO;
    if (r < A.m && k < k_end) {
      x = load(base_a, Index(r) * A.a_row + Index(k) * A.a_col);
    }
    tile_a[A_K(e) * ROW_A + A_ROW(e)] = x;
  }
  [[dont_unroll]] for (uint e = t; e < BK * BN; e += THREADS) {
    uint k = k0 + B_K(e), c = col0 + B_COL(e);
    Acc x = ZERO;
    if (c < A.n && k < k_end) {
      x = load(base_b, Index(k) * A.b_row + Index(c) * A.b_col);
    }
    tile_b[B_K(e) * ROW_B + B_COL(e)] = x;
  }
}
#endif

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
  base_a = MOVED(T, A.a, ao);
  base_b = MOVED(T, A.b, bo);

  uint k_begin = split * A.k_split;
  uint k_end = min(A.k, k_begin + A.k_split);
  uint tx = gl_LocalInvocationIndex % GX;
  uint ty = gl_LocalInvocationIndex / GX;

  Acc acc[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    acc[i] = ZERO;
  }

#if PREFETCH
  fetch(row0, col0, k_begin, k_end);
#endif
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
#if PREFETCH
    stash();
#else
    stage_tiles(row0, col0, k0, k_end);
#endif
    barrier();
#if PREFETCH
    if (k0 + BK < k_end) {
      fetch(row0, col0, k0 + BK, k_end);
    }
#endif
    ROLLED for (uint kk = 0; kk < BK; ++kk) {
      Acc x[TM];
      Acc w[TN];
      [[unroll]] for (uint i = 0; i < TM; ++i) {
        x[i] = tile_a[kk * ROW_A + i / 4 * (GY * 4) + ty * 4 + i % 4];
      }
      [[unroll]] for (uint j = 0; j < TN; ++j) {
        w[j] = tile_b[kk * ROW_B + j / 4 * (GX * 4) + tx * 4 + j % 4];
      }
      [[unroll]] for (uint i = 0; i < TM; ++i) {
        [[unroll]] for (uint j = 0; j < TN; ++j) {
          acc[i * TN + j] = FMA(x[i], w[j], acc[i * TN + j]);
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
#if AXPBY
#define FINISH(v, r, c)                                                       \
  (A.alpha * (v) +                                                            \
   A.beta * load(base_c, Index(r) * A.c_row + Index(c) * A.c_col))
#else
#define FINISH(v, r, c) (v)
#endif
#if PREFETCH
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    uint r = row0 + i / 4 * (GY * 4) + ty * 4 + i % 4;
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      uint c = col0 + j / 4 * (GX * 4) + tx * 4 + j % 4;
      if (r < A.m && c < A.n) {
        Acc v = FINISH(acc[i * TN + j], r, c);
        store(base_y, Index(r) * Index(A.n) + Index(c), v);
      }
    }
  }
#else
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      uint r = i / 4 * (GY * 4) + ty * 4 + i % 4;
      uint c = j / 4 * (GX * 4) + tx * 4 + j % 4;
      tile_y[r * BN + c] = acc[i * TN + j];
    }
  }
  barrier();
  [[dont_unroll]] for (uint e = gl_LocalInvocationIndex; e < BM * BN;
                       e += THREADS) {
    uint r = row0 + e / BN, c = col0 + e % BN;
    if (r < A.m && c < A.n) {
      Acc v = FINISH(tile_y[e], r, c);
      store(base_y, Index(r) * Index(A.n) + Index(c), v);
    }
  }
#endif
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.tiles_m * A.tiles_n * A.splits * A.batches) {
    multiply(group);
  }
}
