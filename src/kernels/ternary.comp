// variants: FORM=0,1,2 C=bool T=f32,bf16 OP=Select; FORM=0,1 C=bool T=u8,i64,c64,bool OP=Select; FORM=0,2 C=bool T=f16 OP=Select LARGE=1; FORM=3 C=bool T=f32,u8,bf16 OP=Select
#pragma STDC FP_CONTRACT OFF
#include "common/types.glsl"
#include "common/forms.glsl"
#include "common/ternary_ops.glsl"

#if DENSE
#define ARGS                                                                  \
  C_PTR a; T_PTR b; T_PTR c; T_PTR y; uint64_t n; uint a_step; uint b_step;   \
  uint c_step;
#else
#define ARGS                                                                  \
  C_PTR a; T_PTR b; T_PTR c; T_PTR y; STRIDED_ARGS int64_t sa[DIMS];          \
  int64_t sb[DIMS]; int64_t sc[DIMS];
#endif
#include "common/args.glsl"

#if DENSE
void item(UIndex i) {
  C a = load(A.a, i * A.a_step);
  T b = load(A.b, i * A.b_step);
  T c = load(A.c, i * A.c_step);
  store(A.y, i, OP(a, b, c));
}
#else
ROW_OPERAND(a)
ROW_OPERAND(b)
ROW_OPERAND(c)
void find_row(UIndex row) {
  FIND_ROW(a, row)
  FIND_ROW(b, row)
  FIND_ROW(c, row)
}
void item(UIndex i, uint at) {
  store(A.y, i, OP(ROW_ITEM(a, at), ROW_ITEM(b, at), ROW_ITEM(c, at)));
}
#endif

#if FORM == 3
T[4] splat(T x) {
  return T[4](x, x, x, x);
}
C[4] splat_condition(C x) {
  return C[4](x, x, x, x);
}

void quad(UIndex u) {
  C a[4] =
      A.a_step == 0u ? splat_condition(load(A.a, 0)) : LOAD4(C_PTR, A.a, u);
  T b[4] = A.b_step == 0u ? splat(load(A.b, 0)) : LOAD4(T_PTR, A.b, u);
  T c[4] = A.c_step == 0u ? splat(load(A.c, 0)) : LOAD4(T_PTR, A.c, u);
  T y[4];
  for (int k = 0; k < 4; ++k) {
    y[k] = OP(a[k], b[k], c[k]);
  }
  STORE4(T_PTR, A.y, u, y);
}
#endif
#include "common/elementwise.glsl"
