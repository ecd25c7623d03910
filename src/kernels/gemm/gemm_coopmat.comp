// Tiled matrix product with cooperative matrices, 16-bit float inputs and
// float32 accumulators; otherwise as gemm.comp.
//
// VA, VB: aligned groups of eight, none across an edge. HALVES multiplies
// bfloat16 operands, both contiguous along k, on float16 matrices.
#include "gemm/product.glsl"
#include "gemm/matrix_tile.glsl"

#define LOADS_B (BN * BK / 8 / WG)
uvec4 next_b[LOADS_B];
#if HALVES
#include "gemm/half_items.glsl"
#endif

// Loads eight items from (r, c) on, along r if T, else along c; zero outside.
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

// Addresses of the invocation's first piece of a tile; byte steps along k and
// between its pieces.
uint64_t from_a, from_b;
int64_t k_step_a, k_step_b, step_a, step_b;

void set_addresses(uint row0, uint col0) {
  uint slow_a = INVOCATION / WIDTH_A;
  uint fast_a = INVOCATION % WIDTH_A * 8;
  uint slow_b = INVOCATION / WIDTH_B;
  uint fast_b = INVOCATION % WIDTH_B * 8;
#if A_T
  Index at_a = Index(row0 + fast_a) * A.a_row + Index(slow_a) * A.a_col;
  step_a = int64_t(A.a_col) * (WG / WIDTH_A * 2);
#else
  Index at_a = Index(row0 + slow_a) * A.a_row + Index(fast_a) * A.a_col;
  step_a = int64_t(A.a_row) * (WG / WIDTH_A * 2);
#endif
#if B_T
  Index at_b = Index(fast_b) * A.b_row + Index(col0 + slow_b) * A.b_col;
  step_b = int64_t(A.b_col) * (WG / WIDTH_B * 2);
#else
  Index at_b = Index(slow_b) * A.b_row + Index(col0 + fast_b) * A.b_col;
  step_b = int64_t(A.b_row) * (WG / WIDTH_B * 2);
#endif
  from_a = uint64_t(base_a) + uint64_t(int64_t(at_a) * 2);
  from_b = uint64_t(base_b) + uint64_t(int64_t(at_b) * 2);
  k_step_a = int64_t(A.a_col) * 2;
  k_step_b = int64_t(A.b_row) * 2;
}

#if VA && VB
#define INSIDE_LOADS(next, LOADS, from, step)                                 \
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {                               \
    next[i] = Ptr_u32x4((from) + uint64_t(int64_t(i) * step)).v[0];           \
  }

// Loads tiles inside both matrices, without comparisons.
void fetch_inside(uint k0) {
  INSIDE_LOADS(next_a, LOADS_A, from_a + uint64_t(int64_t(k0) * k_step_a), step_a)
  INSIDE_LOADS(next_b, LOADS_B, from_b + uint64_t(int64_t(k0) * k_step_b), step_b)
}
#endif

void fetch(uint row0, uint col0, uint k0) {
  uint t = INVOCATION;
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

#if HALVES
#define STASH_TILES(k0) stash_halves(k0);
#else
void stash() {
  STASH(tile_a, next_a, LOADS_A, WIDTH_A)
  STASH(tile_b, next_b, LOADS_B, WIDTH_B)
}
#define STASH_TILES(k0) stash();
#define LOWER_SUMS(acc, wm, wn)
#endif

// Stores a fragment from the subgroup's corner of `stage`.
void put_fragment(Y_PTR y, uint corner, uint r0, uint c0) {
#if !SPLIT && !AXPBY
  // Stores eight items at once if rows are multiples of eight.
  if (A.n % 8u == 0 && (uint64_t(y) & 15ul) == 0ul) {
    [[unroll]] for (uint e = 0; e < ITEMS_C; e += 8 * SG) {
      uint at = e + LANE * 8;
      uint r = r0 + at / MN;
      uint c = c0 + at % MN;
      if (at < ITEMS_C && r < A.m && c < A.n) {
        uvec4 q;
        [[unroll]] for (uint p = 0; p < 4; ++p) {
          q[p] = pack2(stage[corner + at + 2 * p], stage[corner + at + 2 * p + 1]);
        }
        Index y_at = Index(r) * Index(A.n) + Index(c);
        Ptr_u32x4(uint64_t(y) + uint64_t(int64_t(y_at) * 2)).v[0] = q;
      }
    }
    return;
  }
#endif
  UNROLL for (uint e = 0; e < ITEMS_C; e += SG) {
    uint at = e + LANE;
    uint r = r0 + at / MN;
    uint c = c0 + at % MN;
    if (r < A.m && c < A.n) {
      put(y, r, c, stage[corner + at]);
    }
  }
}

void multiply(uint tile) {
  uvec2 origin = tile_at(tile);
  uint row0 = origin.x * BM, col0 = origin.y * BN;
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;

  MATRIX_C acc[FM * FN];
  BEGIN_FRAGMENTS(acc)
#if HALVES
  begin_halves();
#endif
  set_addresses(row0, col0);
#if VA && VB
  // A loop of its own: a branch around the loads costs 10 % of the time.
  bool whole = k_begin < k_end && (k_end - k_begin) % BK == 0;
  if (whole && row0 + BM <= A.m && col0 + BN <= A.n) {
    uint last = k_end - BK;
    fetch_inside(k_begin);
    for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
      barrier();
      STASH_TILES(k0)
      barrier();
      fetch_inside(min(k0 + BK, last));
      LOWER_SUMS(acc, wm, wn)
      MULTIPLY_TILES(acc, wm, wn)
    }
  } else
#endif
  {
    fetch(row0, col0, k_begin);
    for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
      barrier();
      STASH_TILES(k0)
      barrier();
      if (k0 + BK < k_end) {
        fetch(row0, col0, k0 + BK);
      }
      LOWER_SUMS(acc, wm, wn)
      MULTIPLY_TILES(acc, wm, wn)
    }
  }

  Y_PTR y = y_matrix();
#if HALVES
  share_tops();
  if (inexact != 0) { // uniform in the workgroup
    multiply_items(y, row0, col0);
    return;
  }
#endif
  // Fragments pass through the subgroup's corner of shared memory one by one,
  // because their element layout is unknown.
  uint corner = SUBGROUP * ITEMS_C;
  UNROLL for (uint i = 0; i < FM; ++i) {
    UNROLL for (uint j = 0; j < FN; ++j) {
      SYNC_SUBGROUP
      STORE_C(acc[i * FN + j], stage, corner, MN);
      SYNC_SUBGROUP
#if HALVES
      FILL_CORNER(corner, i, j, unscaled)
#endif
      put_fragment(
          y, corner, row0 + (wm * FM + i) * MM, col0 + (wn * FN + j) * MN);
    }
  }
}
