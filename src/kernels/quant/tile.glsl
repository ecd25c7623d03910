// Common part of tiled products of many rows of x. The including kernel defines
// BM, BN, BK, WG and multiply().
//
// SORTED: product i multiplies one row of x by matrix rhs[i]; equal indices are
// adjacent. SPLIT: product i is a part of k, whose float sums go to part_base.
#pragma once

#include "quant/operands.glsl"
#include "gemm/sorted_walk.glsl"

// Offset of a row of x from x_base; clears `inside` if its index is out of
// range.
int64_t x_item(uint m, inout bool inside) {
#if SORTED
  uint row = named(load(A.lhs, m), A.stack.x_matrices, m, inside);
  return int64_t(row) * A.stack.x_matrix;
#else
  return int64_t(m) * A.x_row;
#endif
}
int64_t x_item(uint m) {
  bool inside = true;
  return x_item(m, inside);
}
// Whether the indices of row m of y are in range.
#if SORTED
bool row_inside(uint m) {
  return y_inside && load(A.lhs, m) < A.stack.x_matrices;
}
#elif BATCH == BATCH_GATHER
#define row_inside(m) y_inside
#else
#define row_inside(m) true
#endif

// Run i of a tile of w: `width` contiguous items.
#if TRANSPOSE
#define W_ROWS A.N
#define W_ITEMS A.K
#else
#define W_ROWS A.K
#define W_ITEMS A.N
#endif
struct Run {
  uint row, at;
  bool inside;
};
Run weight_run(uint i, uint width, uint n0, uint k0) {
#if TRANSPOSE
  uint row = n0 + i / (BK / width);
  uint at = k0 + i % (BK / width) * width;
#else
  uint row = k0 + i / (BN / width);
  uint at = n0 + i % (BN / width) * width;
#endif
  return Run(row, at, row < W_ROWS && at < W_ITEMS);
}

#if SPLIT
uint64_t part_base; // of the part's float sums
#endif

void multiply_tile() {
#if SORTED
  multiply_sorted(group_index());
#else
  Tile tile = own_tile();
  uvec2 at = banded(tile.m * A.n_tiles + tile.n);
  uint k_begin = 0u, k_end = A.K;
#if SPLIT
  locate(0);
  part_base = uint64_t(A.y) + uint64_t(tile.product) * A.M * A.N * 4;
  k_begin = tile.product * A.k_split;
  k_end = min(k_begin + A.k_split, A.K);
#else
  locate(tile.product);
#endif
  multiply(at.x * BM, at.y * BN, A.M, tile.live, k_begin, k_end);
#endif
}
