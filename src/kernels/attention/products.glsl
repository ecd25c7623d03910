// Products of matrices whose elements' places are known (common/fragments.glsl), loaded
// from 16-byte pieces in shared memory, `staged`, STAGED of them; or the same made
// of floats there, for a test of the indices where the device has none (EMULATED).
// SUBGROUPS: of the workgroup.
#ifndef ATTENTION_PRODUCTS_GLSL
#define ATTENTION_PRODUCTS_GLSL

#include "attention/matrices.glsl"
#if EMULATED
#include "common/emulated_fragments.glsl"
#endif
#include "attention/fragments.glsl"

#if EMULATED
#define LOAD_A(m, at, pitch) m = loaded(at, pitch, false)
#define LOAD_B(m, at, pitch) m = loaded(at, pitch, true)
#define LOAD_B_TRANSPOSED(m, at, pitch) m = loaded(at, pitch, false)
#ifdef T_IS_bf16
#define ITEM(x) round_bf16(x)
#else
#define ITEM(x) round_f16(x)
#endif
#else
#define UNROLL [[unroll]]
#define SUBGROUP gl_SubgroupID
#define MATRIX_ZERO MATRIX_C(0.0)
// From row `at` of the shared rows on, or from its item 8 on with at + 1.
#define LOAD_A(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B(m, at, pitch) coopMatLoad(m, staged, at, pitch, ROW_MAJOR)
#define LOAD_B_TRANSPOSED(m, at, pitch)                                       \
  coopMatLoad(m, staged, at, pitch, COLUMN_MAJOR)
#define MULTIPLY(y, a, b, c) y = coopMatMulAdd(a, b, c)
#define ITEM(x) Item(x)
#endif

shared uvec4 staged[STAGED];

#if EMULATED
float[8] loaded(uint at, uint pitch, bool transposed) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint row = transposed ? FRAGMENT_COLUMN(e) : FRAGMENT_ROW(e);
    uint column = transposed ? FRAGMENT_ROW(e) : FRAGMENT_COLUMN(e);
    uint pair = staged[at + row * pitch + column / 8][column % 8 / 2];
    m[e] = column % 2 == 0 ? LOW_ITEM(pair) : HIGH_ITEM(pair);
  }
  return m;
}
#endif

#endif
