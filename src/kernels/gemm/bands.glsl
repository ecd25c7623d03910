// Row and column of tile i of a matrix, in bands of eight rows, so that adjacent
// workgroups share columns in cache.
#pragma once

uvec2 banded(uint i) {
  uint band = i / (8u * A.n_tiles);
  uint band_rows = min(8u, A.m_tiles - band * 8u);
  uint in_band = i - band * 8u * A.n_tiles;
  return uvec2(band * 8u + in_band % band_rows, in_band / band_rows);
}
