// Matrices whose elements' places are known, made of floats, and their product
// through shared memory: tests the indices on devices without such matrices.
// SUBGROUPS: of the workgroup.
#pragma once

#undef MATRIX_A
#undef MATRIX_B
#undef MATRIX_C
#define MATRIX_A float[8]
#define MATRIX_B float[8]
#define MATRIX_C float[8]
#define UNROLL [[dont_unroll]] // compiles faster
#define LANE (gl_LocalInvocationIndex % SG)
#define SUBGROUP (gl_LocalInvocationIndex / SG)
#define MATRIX_ZERO float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
#define MATRIX_ONES float[8](1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
#define MULTIPLY(y, a, b, c) y = emulated_product(a, b, c)
// Whether this subgroup takes part, if `some` do: all, for the barriers.
#define EVERY_SUBGROUP(some) true
#ifdef T_IS_bf16
#define LOW_ITEM(pair) uintBitsToFloat((pair) << 16)
#define HIGH_ITEM(pair) uintBitsToFloat((pair) & 0xffff0000u)
#else
#define LOW_ITEM(pair) unpackHalf2x16(pair).x
#define HIGH_ITEM(pair) unpackHalf2x16(pair).y
#endif

#include "common/fragments.glsl"

shared float emulated_a[SUBGROUPS * 256], emulated_b[SUBGROUPS * 256];

// With barriers: for all of the workgroup.
float[8] emulated_product(float[8] a, float[8] b, float[8] c) {
  uint corner = SUBGROUP * 256;
  barrier();
  for (uint e = 0; e < 8; ++e) {
    emulated_a[corner + FRAGMENT_ROW(e) * 16 + FRAGMENT_COLUMN(e)] = a[e];
    emulated_b[corner + FRAGMENT_COLUMN(e) * 16 + FRAGMENT_ROW(e)] = b[e];
  }
  barrier();
  for (uint e = 0; e < 8; ++e) {
    for (uint k = 0; k < 16; ++k) {
      c[e] += emulated_a[corner + FRAGMENT_ROW(e) * 16 + k] *
          emulated_b[corner + k * 16 + FRAGMENT_COLUMN(e)];
    }
  }
  return c;
}
