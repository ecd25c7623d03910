// Products of matrices whose elements' places are known (fragments.glsl), loaded
// from 16-byte pieces in shared memory, `staged`, STAGED of them; or the same made
// of floats there, for a test of the indices where the device has none (EMULATED).
// SUBGROUPS: of the workgroup.
#ifndef ATTENTION_PRODUCTS_GLSL
#define ATTENTION_PRODUCTS_GLSL

#if EMULATED
#define UNROLL [[dont_unroll]] // compiles faster
#define LANE (gl_LocalInvocationIndex % SG)
#define SUBGROUP (gl_LocalInvocationIndex / SG)
#else
#define UNROLL [[unroll]]
#define SUBGROUP gl_SubgroupID
#endif
#include "attention/fragments.glsl"

#if EMULATED
#undef MATRIX_A
#undef MATRIX_B
#undef MATRIX_C
#define MATRIX_A float[8]
#define MATRIX_B float[8]
#define MATRIX_C float[8]
#define MATRIX_ZERO float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
#define LOAD_A(m, at, pitch) m = loaded(FRAGMENT_A, at, pitch, false)
#define LOAD_B(m, at, pitch) m = loaded(FRAGMENT_B, at, pitch, false)
#define LOAD_B_TRANSPOSED(m, at, pitch) m = loaded(FRAGMENT_B, at, pitch, true)
#define MULTIPLY(y, a, b, c) y = multiplied(a, b, c)
#ifdef T_IS_bf16
#define ITEM(x) round_bf16(x)
#define LOW_ITEM(pair) uintBitsToFloat((pair) << 16)
#define HIGH_ITEM(pair) uintBitsToFloat((pair) & 0xffff0000u)
#else
#define ITEM(x) round_f16(x)
#define LOW_ITEM(pair) unpackHalf2x16(pair).x
#define HIGH_ITEM(pair) unpackHalf2x16(pair).y
#endif
#else
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
shared float emulated_a[SUBGROUPS * 256], emulated_b[SUBGROUPS * 256];

uint place_of(uint layout_, uint e) {
  uint item = 0;
  for (uint i = 0; i < 5; ++i) {
    item |= BIT(LANE, i) << PLACE(layout_, i);
  }
  for (uint i = 0; i < 3; ++i) {
    item |= BIT(e, i) << PLACE(layout_, 5 + i);
  }
  return item;
}
float[8] loaded(uint layout_, uint at, uint pitch, bool transposed) {
  float m[8];
  for (uint e = 0; e < 8; ++e) {
    uint item = place_of(layout_, e);
    uint row = transposed ? item % 16 : item / 16;
    uint column = transposed ? item / 16 : item % 16;
    uint pair = staged[at + row * pitch + column / 8][column % 8 / 2];
    m[e] = column % 2 == 0 ? LOW_ITEM(pair) : HIGH_ITEM(pair);
  }
  return m;
}
// With barriers: for all of the workgroup.
float[8] multiplied(float[8] a, float[8] b, float[8] c) {
  uint corner = SUBGROUP * 256;
  barrier();
  for (uint e = 0; e < 8; ++e) {
    emulated_a[corner + place_of(FRAGMENT_A, e)] = a[e];
    emulated_b[corner + place_of(FRAGMENT_B, e)] = b[e];
  }
  barrier();
  for (uint e = 0; e < 8; ++e) {
    uint item = place_of(FRAGMENT_C, e);
    for (uint k = 0; k < 16; ++k) {
      c[e] += emulated_a[corner + item / 16 * 16 + k] *
          emulated_b[corner + k * 16 + item % 16];
    }
  }
  return c;
}
#endif

#endif
