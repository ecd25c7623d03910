// Pairs of items of T, f16 or bf16.
#ifndef PAIRS_GLSL
#define PAIRS_GLSL

#include "common/types.glsl"

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
