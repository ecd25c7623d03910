// Products of matrices whose elements' places are known (common/fragments.glsl), loaded
// from 16-byte pieces in shared memory, `staged`, STAGED of them. EMULATED: of
// floats, by sources in tests/emulation. SUBGROUPS: of the workgroup.
#ifndef ATTENTION_PRODUCTS_GLSL
#define ATTENTION_PRODUCTS_GLSL

#include "attention/matrices.glsl"

shared uvec4 staged[STAGED];

#if EMULATED
#include "attention/emulated_products.glsl"
#else
#define UNROLL [[unroll]]
#define SUBGROUP gl_SubgroupID
#define MATRIX_ZERO MATRIX_C(0.0)
#define EVERY_SUBGROUP(some) some
// From row `at` of the shared rows on, or from its item 8 on with at + 1.
#define LOAD_A(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B_TRANSPOSED(m, at, pitch)                                       \
  coopMatLoad(m, staged, at, pitch, COLUMN_MAJOR)
#define MULTIPLY(y, a, b, c) y = coopMatMulAdd(a, b, c)
#define ITEM(x) Item(x)
#endif

#include "attention/fragments.glsl"

#endif
