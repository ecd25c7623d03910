// variants: FORM=0,1 IN=f32 OUT=f32 OP=Exp,Sqrt,Round; FORM=0 IN=bf16,f16 OUT=bf16 OP=Sin,Tanh,Sigmoid; FORM=1,2 IN=i8,u64 OUT=i8 OP=Abs,Square; FORM=0 IN=c64 OUT=c64 OP=ArcSin,Tan; FORM=0,2 IN=f32 OUT=f32 OP=Erf LARGE=1; FORM=3 IN=bf16,u8,i64,c64 OUT=bf16 OP=Square
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/forms.glsl"
#include "common/unary_ops.glsl"

#if DENSE
#define ARGS IN_PTR x; OUT_PTR y; uint64_t n;
#else
#define ARGS IN_PTR x; OUT_PTR y; STRIDED_ARGS int64_t sx[DIMS];
#endif
#include "common/args.glsl"

#if DENSE
void item(UIndex i) {
  store(A.y, i, OUT_CAST(OP(load(A.x, i))));
}
#else
ROW_OPERAND(x)
void find_row(UIndex row) {
  FIND_ROW(x, row)
}
void item(UIndex i, uint c) {
  store(A.y, i, OUT_CAST(OP(ROW_ITEM(x, c))));
}
#endif

#if FORM == 3
void quad(UIndex u) {
  IN x[4] = LOAD4(IN_PTR, A.x, u);
  OUT y[4];
  for (int k = 0; k < 4; ++k) {
    y[k] = OUT_CAST(OP(x[k]));
  }
  STORE4(OUT_PTR, A.y, u, y);
}
#endif
#include "common/elementwise.glsl"
