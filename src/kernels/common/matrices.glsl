// Cooperative matrices of 16 x 16 items of T, f16 or bf16, a subgroup each.
#ifndef MATRICES_GLSL
#define MATRICES_GLSL

#include "common/types.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

#define MATRIX_A coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_C                                                              \
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor

// Two items as they lie in memory. Not by packHalf2x16() or bf16vec2(): which
// way those round is the driver's choice.
#ifdef T_IS_bf16
#define pack2 pack2_bf16
#else
uint pack2(float a, float b) {
  return uint(f32_to_f16(a)) | (uint(f32_to_f16(b)) << 16);
}
#endif

#endif
