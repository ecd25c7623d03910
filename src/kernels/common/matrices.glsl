// Cooperative matrices of f16 or bf16 items (HALVES: f16 for both), in subgroup
// scope: A of MM x MK items, B of MK x MN, C of MM x MN floats.
#pragma once

#include "common/types.glsl"
#include "common/pairs.glsl"

#ifndef MM
#define MM 16
#define MN 16
#define MK 16
#endif

#if defined(T_IS_bf16) && !HALVES
#define Item bfloat16_t
#else
#define Item float16_t
#endif

#define MATRIX_A coopmat<Item, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA>
#define MATRIX_B coopmat<Item, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB>
#define MATRIX_C                                                              \
  coopmat<float, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor
