// Operands of reduce.comp and reduce_col.comp: elements of outputs, evenly
// spaced (NDIM=1) or strided in two nests of up to 16 dimensions.
#pragma once

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

// Loads element i as an operand.
Acc element(T_PTR p, UIndex i) {
  Index at;
  NEST_OFFSET(at, i, A.reduced);
  return Acc(LIFT(load(p, at)));
}

// Reduces the elements i, i + LANES, ... below `end` into acc: one after the
// other if the team is one invocation, as MLX's CPU does.
Acc reduce_elements(Acc acc, T_PTR p, UIndex i, UIndex end) {
  for (; i + 3 * LANES < end; i += 4 * LANES) {
    Acc a = element(p, i), b = element(p, i + LANES);
    Acc c = element(p, i + 2 * LANES), d = element(p, i + 3 * LANES);
#if LANES == 1
    acc = reduce_op(reduce_op(reduce_op(reduce_op(acc, a), b), c), d);
#else
    acc = reduce_op(acc, reduce_op(reduce_op(a, b), reduce_op(c, d)));
#endif
  }
  for (; i < end; i += LANES) {
    acc = reduce_op(acc, element(p, i));
  }
  return acc;
}
