// Products of many rows of x, tile by tile: what qmm.comp and qmm_coopmat.comp
// share. They define BM, BN, BK and WG, and multiply().
//
// SORTED: product i is one row of x and the matrix rhs[i], and equal matrices
// stand together. Tiles begin where expert_tiles.comp found them to.
#ifndef TILE_GLSL
#define TILE_GLSL

#include "common/loops.glsl"
#include "quant/operands.glsl"

// Rows m0 to end - 1, BM of them at most, by the columns of the located weights
// from n0 on.
void multiply(uint m0, uint n0, uint end, bool live);

// Item 0 of a row of x, from x_base on.
int64_t x_item(uint m) {
#if SORTED
  return int64_t(load(A.lhs, m)) * A.stack.x_matrix;
#else
  return int64_t(m) * A.x_row;
#endif
}

// A tile of w in runs of `width` items that lie together.
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

// Where a workgroup's tile stands: in bands of eight tiles of rows, so that
// neighbouring workgroups share weights in cache.
void banded(inout Tile tile) {
  uint i = tile.m * A.n_tiles + tile.n;
  uint band = i / (8u * A.n_tiles);
  uint band_rows = min(8u, A.m_tiles - band * 8u);
  uint in_band = i - band * 8u * A.n_tiles;
  tile.m = band * 8u + in_band % band_rows;
  tile.n = in_band / band_rows;
}

#if SORTED
// There are not more tiles than workgroups for them unless equal matrices stand
// apart, and not more than rows.
void multiply_tile(Tile tile) {
  banded(tile);
  uint count = tile.live ? load(A.tiles, 0) : 0u;
  uint i = tile.m;
  BOUNDED_WHILE(i < count, A.M) {
    uint begin = load(A.tiles, 1u + i);
    uint end = load(A.tiles, 2u + i);
    locate_matrix(load(A.rhs, begin));
    multiply(begin, tile.n * BN, end, true);
    i += A.m_tiles;
  }
}
#else
void multiply_tile(Tile tile) {
  banded(tile);
  locate(tile.product);
  multiply(tile.m * BM, tile.n * BN, A.M, tile.live);
}
#endif

#endif
