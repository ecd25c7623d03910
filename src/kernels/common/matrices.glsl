// Cooperative matrices of 16 x 16 items of T, f16 or bf16, a subgroup each.
#ifndef MATRICES_GLSL
#define MATRICES_GLSL

#include "common/types.glsl"
#include "common/pairs.glsl"

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

#endif
