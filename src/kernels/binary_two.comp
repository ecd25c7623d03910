// variants: FORM=0,1 IN=f32,i8 OUT=f32 OP=DivMod; FORM=2 IN=u64 OUT=u64 OP=DivMod LARGE=1
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/forms.glsl"
#include "common/binary_ops.glsl"

// As binary.comp, with two outputs.
#if DENSE
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y0; OUT_PTR y1; uint64_t n; uint a_step;        \
  uint b_step;
#else
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y0; OUT_PTR y1; STRIDED_ARGS int64_t sa[DIMS];  \
  int64_t sb[DIMS];
#endif
#include "common/args.glsl"

#define DivMod0 FloorDivide
#define DivMod1 Remainder
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

void put(UIndex i, IN a, IN b) {
  store(A.y0, i, OUT_CAST(JOIN(OP, 0)(a, b)));
  store(A.y1, i, OUT_CAST(JOIN(OP, 1)(a, b)));
}
#include "common/binary_items.glsl"
#include "common/elementwise.glsl"
