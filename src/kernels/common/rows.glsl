// Common part of kernels over rows of `n` items along a contiguous last axis
// (rows.h), in teams of LANES (common/lanes.glsl). Row r of y starts at r * n.
#pragma once

#include "common/lanes.glsl"
#include "common/vec4.glsl"
#include "rows.h"

#define team_index() (uint64_t(group_index()) * TEAMS + TEAM)

// Offset of the first item of a row.
int64_t row_offset(RowArgs rows, uint64_t row) {
  if (rows.inner == 1) {
    return int64_t(row) * rows.outer_stride;
  }
  uint64_t outer = row / rows.inner;
  return int64_t(outer) * rows.outer_stride +
      int64_t(row - outer * rows.inner) * rows.inner_stride;
}

// Declares `row`, this team's row, `live`, whether it exists (other teams take
// row 0, so that barriers stay uniform), and x, the address of its first item.
#define ROW_FIND                                                              \
  uint64_t row = team_index();                                                \
  bool live = row < A.rows.count;                                             \
  row = live ? row : uint64_t(0);                                             \
  uint n = A.rows.n;                                                     \
  T_PTR x = MOVED(T, A.x, row_offset(A.rows, row));

#define ROW_BEGIN                                                             \
  ROW_FIND                                                                    \
  T_PTR y = MOVED(T, A.y, row * n);

// Iterates over this invocation's pieces of four items, starting at i. With
// CHUNKS pieces per invocation a row can be kept in registers, indexed by c.
#if CHUNKS
#define EACH4                                                                 \
  [[unroll]] for (uint c = 0, i = LANE * 4; c < CHUNKS; ++c, i += LANES * 4)
#else
#define EACH4 for (uint i = LANE * 4; i < n; i += LANES * 4)
#endif

// `v` for items of i..i+3 inside the row, `other` beyond its end.
#if VEC
#define IN_ROW4(i, n, v, other) ((i) < (n) ? (v) : vec4(other))
#else
#define IN_ROW4(i, n, v, other)                                               \
  mix(vec4(other), v, lessThan(uvec4(i, (i) + 1, (i) + 2, (i) + 3), uvec4(n)))
#endif

// Items i..i+3 of a vector along the row: contiguous with VEC, else strided.
#if VEC
#define VECTOR4(p, stride, i, n) FETCH4(p, i, n, 0.0)
#else
#define VECTOR4(p, stride, i, n)                                              \
  vec4(                                                                       \
      (i) < (n) ? load(p, int64_t(i) * stride) : 0.0,                         \
      (i) + 1 < (n) ? load(p, int64_t((i) + 1) * stride) : 0.0,               \
      (i) + 2 < (n) ? load(p, int64_t((i) + 2) * stride) : 0.0,               \
      (i) + 3 < (n) ? load(p, int64_t((i) + 3) * stride) : 0.0)
#endif
