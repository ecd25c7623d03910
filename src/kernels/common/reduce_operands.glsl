// What reduce.comp and reduce_col.comp read: elements of outputs, evenly spaced
// (NDIM=1) or in two nests of up to 16 dimensions.
#ifndef REDUCE_OPERANDS_GLSL
#define REDUCE_OPERANDS_GLSL

#include "common/nest.glsl"
#include "common/reduce_ops.glsl"
#include "reduce.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"

T_PTR output_elements(UIndex o) {
  Index base;
  NEST_OFFSET(base, o, A.kept);
  return MOVED(T, A.x, base);
}

// Element i as an operand.
Acc element(T_PTR p, UIndex i) {
  Index at;
  NEST_OFFSET(at, i, A.reduced);
  return Acc(LIFT(load(p, at)));
}

// acc and the elements i, i + LANES and so on below `end`.
Acc reduce_elements(Acc acc, T_PTR p, UIndex i, UIndex end) {
  for (; i + 3 * LANES < end; i += 4 * LANES) {
    Acc a = element(p, i), b = element(p, i + LANES);
    Acc c = element(p, i + 2 * LANES), d = element(p, i + 3 * LANES);
    acc = reduce_op(acc, reduce_op(reduce_op(a, b), reduce_op(c, d)));
  }
  for (; i < end; i += LANES) {
    acc = reduce_op(acc, element(p, i));
  }
  return acc;
}

#endif
