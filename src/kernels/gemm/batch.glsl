// Offsets of a batch item (gemm/batch.h), always 64-bit. Include after the
// arguments.
#pragma once

#include "common/bounds.glsl"
#include "common/index.glsl"

// Adds to `result` the offset of the row-major index `flat`. A macro, because
// arrays in the argument block cannot be passed to a function.
#define ADD_NEST(result, flat, ndim, extents, strides)                        \
  {                                                                           \
    uint rest_ = flat;                                                        \
    for (int d_ = ndim - 1; d_ >= 0; --d_) {                                  \
      result += int64_t(take_axis(rest_, uint(extents[d_]))) * strides[d_];   \
    }                                                                         \
  }

#ifdef BATCH
// Clears `inside` if an index is out of range.
void batch_offsets(
    uint item, out int64_t a, out int64_t b, out int64_t c, out bool inside) {
  inside = true;
#if BATCH == BATCH_EVEN
  a = int64_t(item) * A.batch.a;
  b = int64_t(item) * A.batch.b;
  c = int64_t(item) * A.batch.c;
#else
  a = b = c = 0l;
#endif
#if BATCH == BATCH_NEST
  ADD_NEST(a, item, A.batch.ndim, A.batch.shape, A.batch.a)
  ADD_NEST(b, item, A.batch.ndim, A.batch.shape, A.batch.b)
  ADD_NEST(c, item, A.batch.ndim, A.batch.shape, A.batch.c)
#elif BATCH == BATCH_GATHER
  int64_t l = 0l, r = 0l;
  ADD_NEST(l, item, A.batch.ndim, A.batch.shape, A.batch.lhs)
  ADD_NEST(r, item, A.batch.ndim, A.batch.shape, A.batch.rhs)
  uint li = named(load(A.lhs, l), A.batch.a_count, item, inside);
  uint ri = named(load(A.rhs, r), A.batch.b_count, item, inside);
  ADD_NEST(a, li, A.batch.a_ndim, A.batch.a_shape, A.batch.a)
  ADD_NEST(b, ri, A.batch.b_ndim, A.batch.b_shape, A.batch.b)
#endif
}
#endif
