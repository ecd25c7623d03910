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

uint64_t row_address(uint m) {
  bool inside = true;
  uint row = named(load(A.lhs, m), A.a_rows, m, inside);
  return uint64_t(A.a) + uint64_t(int64_t(row) * A.a_row * 2);
}

#define ENDS_INSIDE true
#define LOADS_B (BN * BK / 8 / WG)
uvec4 next_b[LOADS_B];
uint64_t from_b[LOADS_B]; // rows (B_T) or columns of the pieces
int64_t pitch;

// Columns beyond the last repeat it and are not stored.
void set_b(uint m0, uint end, uint n0) {
  pitch = A.b_pitch;
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    uint e = INVOCATION + i * WG;
#if B_T
    int64_t at = int64_t(min(n0 + e / WIDTH_B, A.N - 1)) * pitch;
#else
    int64_t at = int64_t(min(n0 + e % WIDTH_B * 8, A.N - 8));
#endif
    from_b[i] = uint64_t(b_base) + uint64_t(at * 2);
  }
}

// Offset along k in a tile of piece i.
uint own_b(uint i) {
  uint e = INVOCATION + i * WG;
#if B_T
  return e % WIDTH_B * 8;
#else
  return e / WIDTH_B;
#endif
}

void fetch_b(uint span, uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
#if B_T
    next_b[i] = Ptr_u32x4(from_b[i]).v[min(k0 + own_b(i), depth - 8) / 8];
#else
    int64_t row = int64_t(min(k0 + own_b(i), depth - 1));
    next_b[i] = Ptr_u32x4(from_b[i] + uint64_t(row * pitch * 2)).v[0];
#endif
  }
}

void clear_b(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    next_b[i] = k0 + own_b(i) < depth ? next_b[i] : uvec4(0);
  }
}

void stash_b(uint span) {
  STASH(tile_b, next_b, LOADS_B, WIDTH_B)
}

#include "gemm/rows_tile.glsl"

void main() {
  multiply_sorted(group_index());
}
