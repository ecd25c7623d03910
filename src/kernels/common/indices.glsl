// Index tuples of gathers and scatters. The argument block holds
//   uint64_t index[NIDX]            addresses of the index arrays
//   int64_t axis_strides[NIDX]      of the indexed array, by axis
//   int64_t index_strides[NIDX * I_NDIM]
//   int axis_sizes[NIDX]
//   uint index_shape[I_NDIM], index_ndim
// and for the slice at a tuple, slice_shape[S_NDIM], slice_ndim. NIDX may be 0.
#ifndef INDICES_GLSL
#define INDICES_GLSL

#include "common/types.glsl"

// A negative index counts from the end. The sign is tested in I: drivers have
// been seen to get the 64-bit test of a widened int wrong.
int64_t wrap_index(I k, int size) {
#if I_KIND == KIND_INT
  return int64_t(k) + (k < I(0) ? int64_t(size) : int64_t(0));
#else
  return int64_t(k);
#endif
}

#ifdef NIDX

#if NIDX > 0
#define INDEX_ADDRESS_ARG uint64_t index[NIDX];
#define INDEX_STRIDE_ARGS                                                     \
  int64_t axis_strides[NIDX];                                                 \
  int64_t index_strides[NIDX * I_NDIM];
#define INDEX_SIZE_ARGS                                                       \
  int axis_sizes[NIDX];                                                       \
  uint index_shape[I_NDIM];                                                   \
  uint index_ndim;
#else
#define INDEX_ADDRESS_ARG
#define INDEX_STRIDE_ARGS
#define INDEX_SIZE_ARGS
#endif

#if S_NDIM == MAX_NDIM
#define SLICE_NDIM int(A.slice_ndim)
#else
#define SLICE_NDIM S_NDIM
#endif
#if I_NDIM == MAX_NDIM
#define TUPLE_NDIM int(A.index_ndim)
#else
#define TUPLE_NDIM I_NDIM
#endif
#endif

#endif
