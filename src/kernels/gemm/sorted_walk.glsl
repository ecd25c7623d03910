// Assignment of workgroups to tiles of y, for dense and quantized products of
// many rows. The including kernel defines multiply(), which computes a tile.
#pragma once

#include "common/loops.glsl"
#include "gemm/bands.glsl"

// Computes rows m0 to end - 1 (at most BM) by the columns of the located matrix
// from n0 on, over k_begin to k_end - 1. Called by the whole workgroup.
void multiply(
    uint m0, uint n0, uint end, bool live, uint k_begin, uint k_end);

#if SORTED
#ifndef GROUPS_IN_GRID
#define GROUPS_IN_GRID A.groups
#endif
// Row i uses matrix rhs[i]; sorted_tiles.comp computed the tile boundaries. A
// workgroup takes several tiles only if equal indices are not adjacent; tiles
// never outnumber rows, which bounds the loop. The tile count is uniform in the
// workgroup, so barriers are safe.
void multiply_sorted(uint group) {
  uvec2 tile = banded(min(group, GROUPS_IN_GRID - 1u));
  uint count = group < GROUPS_IN_GRID ? load(A.tiles, 0) : 0u;
  uint i = tile.x;
  BOUNDED_WHILE(i < count, A.M) {
    // Lavapipe loads once more, without invocations (docs/dev/driver-bugs.md).
    uint at = min(i, A.M - 1u);
    uint begin = min(load(A.tiles, 1u + at), A.M - 1u);
    uint end = load(A.tiles, 2u + at);
    locate_matrix(load(A.rhs, begin), begin);
    multiply(begin, tile.y * BN, end, true, 0u, A.K);
    i += A.m_tiles;
  }
}
#endif
