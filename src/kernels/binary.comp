#pragma STDC FP_CONTRACT OFF
#define OPERANDS 2
#define STEPS 1
#define EACH_INPUT(F, S) F(0, IN, IN_PTR, a) F(1, IN, IN_PTR, b)
#if REMAINDER
#define EACH_RESULT(F) F(0, OUT, OUT_PTR, y) F(1, OUT, OUT_PTR, remainder)
#else
#define EACH_RESULT(F) F(0, OUT, OUT_PTR, y)
#endif
#include "common/elementwise.glsl"
#include "common/binary_ops.glsl"

#if REMAINDER
void compute(UIndex i, IN a, IN b, out OUT y, out OUT remainder) {
  y = OUT_CAST(OP(a, b));
  remainder = OUT_CAST(Remainder(a, b));
}
#else
void compute(UIndex i, IN a, IN b, out OUT y) {
  y = OUT_CAST(OP(a, b));
}
#endif
