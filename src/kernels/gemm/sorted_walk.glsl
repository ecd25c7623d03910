// The way of workgroups through the tiles of y: what dense and quantized
// products of many rows share. multiply() makes one tile, whatever loop over k
// does that.
#ifndef SORTED_WALK_GLSL
#define SORTED_WALK_GLSL

#include "common/loops.glsl"

// Rows m0 to end - 1, BM of them at most, by the columns of the located matrix
// from n0 on. The whole workgroup calls it.
void multiply(uint m0, uint n0, uint end, bool live);

// Tile i of a matrix, as its row and column of tiles: bands of eight rows, so
// that neighbouring workgroups share columns in cache.
uvec2 banded(uint i) {
  uint band = i / (8u * A.n_tiles);
  uint band_rows = min(8u, A.m_tiles - band * 8u);
  uint in_band = i - band * 8u * A.n_tiles;
  return uvec2(band * 8u + in_band % band_rows, in_band / band_rows);
}

#if SORTED
// Row i takes the matrix rhs[i], and tiles begin where sorted_tiles.comp found
// them to. There are not more of them than workgroups unless equal matrices
// stand apart, and not more than rows. A workgroup without one has nothing to
// do, before any barrier.
void multiply_sorted(uint group) {
  uvec2 tile = banded(min(group, A.groups - 1u));
  uint count = group < A.groups ? load(A.tiles, 0) : 0u;
  uint i = tile.x;
  BOUNDED_WHILE(i < count, A.M) {
    uint begin = load(A.tiles, 1u + i);
    uint end = load(A.tiles, 2u + i);
    locate_matrix(load(A.rhs, begin), begin);
    multiply(begin, tile.y * BN, end, true);
    i += A.m_tiles;
  }
}
#endif

#endif
