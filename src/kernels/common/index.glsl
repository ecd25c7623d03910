// Strides -> offsets, for strided kernels.
//
// The host defines NDIM (collapsed dimensions, MAX_NDIM means "read A.ndim at
// run time") and, for arrays beyond 2^31 bytes, LARGE. Shapes and strides are
// in elements, outermost first; strides may be negative or zero.
#ifndef INDEX_GLSL
#define INDEX_GLSL

#define MAX_NDIM 16

// Items of a row that one invocation of a strided elementwise kernel takes;
// mirrors ops/elementwise.h.
#define STRIDED_WORK 4u

#ifdef LARGE
#define Index int64_t
#define UIndex uint64_t
#define flat_index() thread_index64()
#else
#define Index int
#define UIndex uint
#define flat_index() thread_index()
#endif

// OFFSET(result, flat, shape, strides, ndim): result = offset in elements of
// the row-major index `flat`. A macro, because buffer-resident arrays cannot
// be passed to a function by reference.
#define OFFSET(result, flat, shape, strides, ndim)                            \
  {                                                                           \
    UIndex rest_ = UIndex(flat);                                              \
    result = Index(0);                                                        \
    for (int d_ = int(ndim) - 1; d_ >= 0; --d_) {                             \
      UIndex extent_ = UIndex(uint(shape[d_]));                               \
      UIndex next_ = rest_ / extent_;                                         \
      result += Index(rest_ - next_ * extent_) * Index(strides[d_]);          \
      rest_ = next_;                                                          \
    }                                                                         \
  }

#endif
