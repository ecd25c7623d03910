// Kernels over rows of `n` items along a contiguous last axis, in teams of
// LANES (common/lanes.glsl). Row r of x starts at
//   (r / inner) * outer_stride + (r % inner) * inner_stride
// and row r of y at r * n. On the host: ops/rows.h.
#ifndef ROWS_GLSL
#define ROWS_GLSL

#if LANES <= 128
#define WG_SIZE 128
#else
#define WG_SIZE LANES
#endif

#include "common/lanes.glsl"
#include "common/vec4.glsl"

#define ROW_ARGS                                                              \
  uint64_t rows; int64_t outer_stride; int64_t inner_stride; uint inner;      \
  uint n;

// `row` is this team's row, `live` says whether it exists (others shadow row
// 0 so that barriers stay uniform), x is at its first item.
#define ROW_FIND                                                              \
  uint64_t row = uint64_t(group_index()) * TEAMS + TEAM;                      \
  bool live = row < A.rows;                                                   \
  row = live ? row : uint64_t(0);                                             \
  uint n = A.n;                                                               \
  int64_t x_offset;                                                           \
  if (A.inner == 1) {                                                         \
    x_offset = int64_t(row) * A.outer_stride;                                 \
  } else {                                                                    \
    uint64_t outer_row = row / A.inner;                                       \
    x_offset = int64_t(outer_row) * A.outer_stride +                          \
        int64_t(row - outer_row * A.inner) * A.inner_stride;                  \
  }                                                                           \
  T_PTR x = MOVED(T, A.x, x_offset);

#define ROW_BEGIN                                                             \
  ROW_FIND                                                                    \
  T_PTR y = MOVED(T, A.y, row * n);

// `v` where items i..i+3 are in the row, `other` elsewhere.
#if VEC
#define IN_ROW4(i, n, v, other) ((i) < (n) ? (v) : vec4(other))
#else
#define IN_ROW4(i, n, v, other)                                               \
  mix(vec4(other), v, lessThan(uvec4(i, (i) + 1, (i) + 2, (i) + 3), uvec4(n)))
#endif

#endif
