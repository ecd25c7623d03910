// Common part of Gather and Scatter. The kernel defines UPDATES.
#pragma once

#include "common/indices.glsl"
#include "gather_scatter.h"
#define ARGS_BLOCK TupleArgs
#include "common/args.glsl"

#if NIDX > 3
#define INDEX_ARRAYS int(A.nidx)
#else
#define INDEX_ARRAYS NIDX
#endif
#if I_NDIM == MAX_NDIM
#define TUPLE_NDIM int(A.tuple_ndim)
#else
#define TUPLE_NDIM I_NDIM
#endif
#if S_NDIM == MAX_NDIM
#define SLICE_NDIM int(A.slice_ndim)
#else
#define SLICE_NDIM S_NDIM
#endif

// Offset of an operand at a tuple.
int64_t tuple_offset(int operand, UIndex tuple) {
  int64_t offset = 0;
  for (int d = TUPLE_NDIM - 1; d >= 0; --d) {
    offset += int64_t(TAKE_AXIS(d, tuple, UIndex(A.tuple_shape[d]))) *
        A.tuple_strides[operand][d];
  }
  return offset;
}

Place place(UIndex i) {
  UIndex tuple = i / UIndex(A.slice);
  UIndex rest = i - tuple * UIndex(A.slice);
  Place at = Place(0, 0, true);
  for (int d = SLICE_NDIM - 1; d >= 0; --d) {
    int64_t here = int64_t(TAKE_AXIS(d, rest, UIndex(A.slice_shape[d])));
    at.target += here * A.slice_strides[0][d];
#if UPDATES
    at.update += here * A.slice_strides[1][d];
#endif
  }
#if UPDATES
  at.update += tuple_offset(NIDX, tuple);
#endif
  for (int n = 0; n < INDEX_ARRAYS; ++n) {
    I index = load(I_PTR(A.index[n]), tuple_offset(n, tuple));
    uint k = bounded(
        index,
        uint(A.axis_sizes[n]),
        A.axis_starts[n],
        uint64_t(tuple),
        at.inside);
    at.target += int64_t(k) * A.axis_strides[n];
  }
  return at;
}
