// Offsets from strides, for strided kernels.
//
// The host defines NDIM (collapsed dimensions; MAX_NDIM reads A.ndim at run
// time) and LARGE, 1 for arrays beyond 2^31 bytes. Shapes and strides are in
// elements, outermost first; strides may be negative or zero.
#pragma once

#define MAX_NDIM 16

#if LARGE
#define Index int64_t
#define UIndex uint64_t
#define flat_index() thread_index64()
#else
#define Index int
#define UIndex uint
#define flat_index() thread_index()
#endif

// The innermost dimension.
#if NDIM == MAX_NDIM
#define LAST_AXIS (int(A.ndim) - 1)
#else
#define LAST_AXIS (NDIM - 1)
#endif

// Removes the position along an axis of `extent` items from a row-major index;
// call it from the innermost axis outwards.
uint take_axis(inout uint rest, uint extent) {
  uint next = rest / extent;
  uint here = rest - next * extent;
  rest = next;
  return here;
}
uint64_t take_axis(inout uint64_t rest, uint64_t extent) {
  uint64_t next = rest / extent;
  uint64_t here = rest - next * extent;
  rest = next;
  return here;
}
// take_axis() for axis d; the outermost axis needs no division.
#define TAKE_AXIS(d, rest, extent) ((d) > 0 ? take_axis(rest, extent) : rest)

// OFFSET(result, flat, shape, strides, ndim): offset in elements of row-major
// index `flat`. A macro, because functions cannot take arrays in buffers.
#define OFFSET(result, flat, shape, strides, ndim)                            \
  {                                                                           \
    UIndex rest_ = UIndex(flat);                                              \
    result = Index(0);                                                        \
    for (int d_ = int(ndim) - 1; d_ >= 0; --d_) {                             \
      result += Index(take_axis(rest_, UIndex(uint(shape[d_])))) *            \
          Index(strides[d_]);                                                 \
    }                                                                         \
  }
