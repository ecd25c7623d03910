// Dense products of rows sorted by matrix index (batch.h).
#pragma once

#define SORTED 1
#include "common/bounds.glsl"
#include "common/index.glsl"
#include "common/types.glsl"
#define Y_PTR T_PTR
#include "gemm/gemm.h"
#define ARGS_BLOCK GemmArgs
#include "common/args.glsl"

T_PTR base_a, base_b, y_base;
bool y_inside; // whether the matrix index of the tile is in range

void locate_matrix(uint r, uint at) {
  y_inside = true;
  r = named(r, A.batch.b_count, at, y_inside);
  base_a = A.a;
  base_b = MOVED(T, A.b, int64_t(r) * A.batch.b_pieces * 8);
  y_base = A.y;
}

bool row_inside(uint m) {
  return y_inside && load(A.lhs, m) < A.batch.a_count;
}
#define ROW_ITEM(inside, sum) ((inside) ? (sum) : 0.0)

uint64_t row_address(uint m) {
  bool inside = true;
  uint row = named(load(A.lhs, m), A.batch.a_count, m, inside);
  return uint64_t(A.a) + uint64_t(int64_t(row) * A.a_row * 2);
}

#define GROUPS_IN_GRID (A.m_tiles * A.n_tiles)
#include "gemm/sorted_walk.glsl"
