// Products of rows sorted by matrix index (sorted.h) with cooperative matrices,
// 16-bit float inputs and float32 accumulators. All rows of a tile use the same
// matrix of b.
#define SORTED 1
#define A_T 0
#include "common/types.glsl"
#include "common/bounds.glsl"
#include "gemm/sorted.h"
#define ARGS_BLOCK GemmSortedArgs
#include "common/args.glsl"
#include "gemm/matrix_tile.glsl"

T_PTR b_base;
T_PTR y_base;
bool y_inside; // whether the matrix index of the tile is in range

void locate_matrix(uint r, uint at) {
  y_inside = true;
  r = named(r, A.b_matrices, at, y_inside);
  b_base = MOVED(T, A.b, int64_t(r) * A.b_matrix);
  y_base = A.y;
}

bool row_inside(uint m) {
  return y_inside && load(A.lhs, m) < A.a_rows;
}
#define ROW_ITEM(inside, sum) ((inside) ? (sum) : 0.0)

#include "gemm/sorted_walk.glsl"
#include "gemm/store_rows.glsl"

#define LOADS_B (BN * BK / 8 / WG)
uvec4 next_b[LOADS_B];
// Addresses of the pieces' rows and columns.
uint64_t from_a[LOADS_A], from_b[LOADS_B];

// Computes the addresses. Rows and columns beyond the last repeat it and are
// not stored.
void set_addresses(uint m0, uint end, uint n0) {
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    uint e = t + i * WG;
    uint m = min(m0 + e / WIDTH_A, end - 1);
    bool inside = true;
    uint row = named(load(A.lhs, m), A.a_rows, m, inside);
    int64_t at = int64_t(row) * A.a_row;
    from_a[i] = uint64_t(A.a) + uint64_t(at * 2);
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = t + i * WG;
#if B_T
    uint row = min(n0 + e / WIDTH_B, A.N - 1);
    int64_t at = int64_t(row) * A.b_pitch;
#else
    uint column = min(n0 + e % WIDTH_B * 8, A.N - 8);
    int64_t at = int64_t(column);
#endif
    from_b[i] = uint64_t(b_base) + uint64_t(at * 2);
  }
}

// Offsets along k in a tile of the invocation's pieces.
uint own_a(uint i) {
  return (gl_LocalInvocationIndex + i * WG) % WIDTH_A * 8;
}
uint own_b(uint i) {
  uint e = gl_LocalInvocationIndex + i * WG;
#if B_T
  return e % WIDTH_B * 8;
#else
  return e / WIDTH_B;
#endif
}

// Prefetches the tiles at k0. Clamps indices beyond depth, because a branch
// around the loads costs 10 % of the time; clear_beyond() zeroes the result.
void fetch(uint k0, uint depth, int64_t pitch) {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = Ptr_u32x4(from_a[i]).v[min(k0 + own_a(i), depth - 8) / 8];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
#if B_T
    next_b[i] = Ptr_u32x4(from_b[i]).v[min(k0 + own_b(i), depth - 8) / 8];
#else
    int64_t row = int64_t(min(k0 + own_b(i), depth - 1));
    next_b[i] = Ptr_u32x4(from_b[i] + uint64_t(row * pitch * 2)).v[0];
#endif
  }
}

void clear_beyond(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = k0 + own_a(i) < depth ? next_a[i] : uvec4(0);
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    next_b[i] = k0 + own_b(i) < depth ? next_b[i] : uvec4(0);
  }
}

void multiply(uint m0, uint n0, uint end, bool live) {
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;
  const uint depth = A.K;
  const int64_t pitch = A.b_pitch;
  MATRIX_C acc[FM * FN];
  CLEAR_FRAGMENTS(acc)
  set_addresses(m0, end, n0);
  fetch(0, depth, pitch);
  uint rows_inside = find_rows_inside(m0 + wm * FM * MM, end);
  for (uint k0 = 0; k0 < depth; k0 += BK) {
    barrier();
    if (k0 + BK > depth) {
      clear_beyond(k0, depth);
    }
    STASH(tile_a, next_a, LOADS_A, WIDTH_A)
    STASH(tile_b, next_b, LOADS_B, WIDTH_B)
    barrier();
    fetch(k0 + BK, depth, pitch);
    MULTIPLY_TILES(acc, wm, wn)
  }
  STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)
}

void main() {
  multiply_sorted(group_index());
}
