#pragma STDC FP_CONTRACT OFF
#define OPERANDS 3
#define STEPS 1
#define EACH_INPUT(F, S) F(0, C, C_PTR, a) F(1, T, T_PTR, b) F(2, T, T_PTR, c)
#define EACH_RESULT(F) F(0, T, T_PTR, y)
#include "common/elementwise.glsl"
#include "common/ternary_ops.glsl"

void compute(UIndex i, C a, T b, T c, out T y) {
  y = OP(a, b, c);
}
