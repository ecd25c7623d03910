// What reduce.comp and reduce_col.comp read: elements of outputs, evenly spaced
// (NDIM=1) or in two nests of up to 16 dimensions.
#ifndef REDUCE_OPERANDS_GLSL
#define REDUCE_OPERANDS_GLSL

#include "common/index.glsl"
#include "common/reduce_ops.glsl"

#if NDIM == 1
#define NEST int64_t kept_stride; int64_t red_stride;
#else
#define NEST                                                                  \
  int kept_ndim; int red_ndim; int kept_shape[NDIM]; int red_shape[NDIM];     \
  int64_t kept_strides[NDIM]; int64_t red_strides[NDIM];
#endif
#define ARGS                                                                  \
  T_PTR x; U_PTR y; uint64_t outputs; uint64_t extent; uint64_t chunk;        \
  uint64_t splits; NEST
#include "common/args.glsl"

T_PTR output_elements(UIndex o) {
#if NDIM == 1
  return MOVED(T, A.x, int64_t(o) * A.kept_stride);
#else
  Index base;
  OFFSET(base, o, A.kept_shape, A.kept_strides, A.kept_ndim);
  return MOVED(T, A.x, base);
#endif
}

// Element i as an operand.
Acc element(T_PTR p, UIndex i) {
#if NDIM == 1
  return Acc(LIFT(load(p, Index(i) * Index(A.red_stride))));
#else
  Index at;
  OFFSET(at, i, A.red_shape, A.red_strides, A.red_ndim);
  return Acc(LIFT(load(p, at)));
#endif
}

// acc and the elements i, i + LANES and so on below `end`.
Acc reduce_elements(Acc acc, T_PTR p, UIndex i, UIndex end) {
#if NDIM == 1
  for (; i + 3 * LANES < end; i += 4 * LANES) {
    Acc a = element(p, i), b = element(p, i + LANES);
    Acc c = element(p, i + 2 * LANES), d = element(p, i + 3 * LANES);
    acc = reduce_op(acc, reduce_op(reduce_op(a, b), reduce_op(c, d)));
  }
#endif
  for (; i < end; i += LANES) {
    acc = reduce_op(acc, element(p, i));
  }
  return acc;
}

#endif
