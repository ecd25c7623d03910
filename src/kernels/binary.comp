// variants: FORM=0,1 IN=f32 OUT=f32 OP=Add,Power,Remainder; FORM=0 IN=f32,bf16,c64 OUT=bool OP=Less,NaNEqual; FORM=1,2 IN=i8,u64,bool OUT=i32 OP=Multiply,FloorDivide; FORM=0,2 IN=f16 OUT=f16 OP=LogAddExp LARGE=1; FORM=3 IN=f16,i8,u64 OUT=bool OP=Less; FORM=3 IN=c64,bf16 OUT=c64 OP=Multiply LARGE=1
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/forms.glsl"
#include "common/binary_ops.glsl"

#if DENSE
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y; uint64_t n; uint a_step; uint b_step;
#else
#define ARGS                                                                  \
  IN_PTR a; IN_PTR b; OUT_PTR y; STRIDED_ARGS int64_t sa[DIMS];               \
  int64_t sb[DIMS];
#endif
#include "common/args.glsl"

void put(UIndex i, IN a, IN b) {
  store(A.y, i, OUT_CAST(OP(a, b)));
}
#include "common/binary_items.glsl"

#if FORM == 3
IN[4] splat(IN x) {
  return IN[4](x, x, x, x);
}

void quad(UIndex u) {
  IN a[4] = A.a_step == 0u ? splat(load(A.a, 0)) : LOAD4(IN_PTR, A.a, u);
  IN b[4] = A.b_step == 0u ? splat(load(A.b, 0)) : LOAD4(IN_PTR, A.b, u);
  OUT y[4];
  for (int k = 0; k < 4; ++k) {
    y[k] = OUT_CAST(OP(a[k], b[k]));
  }
  STORE4(OUT_PTR, A.y, u, y);
}
#endif
#include "common/elementwise.glsl"
