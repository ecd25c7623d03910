#pragma STDC FP_CONTRACT OFF
#define OPERANDS 1
#define STEPS 1
#define EACH_INPUT(F, S) F(0, IN, IN_PTR, x)
#define EACH_RESULT(F) F(0, OUT, OUT_PTR, y)
#include "common/elementwise.glsl"
#include "common/unary_ops.glsl"

void compute(UIndex i, IN x, out OUT y) {
  y = OUT_CAST(OP(x));
}
