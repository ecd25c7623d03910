// Pairs of 16-bit items of T, f16 or bf16.
#pragma once

#include "common/types.glsl"

// Packs two items in memory order. packHalf2x16() and bfloat16_t() are avoided,
// because their rounding is up to the driver: NVIDIA's truncates to bfloat16.
#ifdef T_IS_bf16
#define TWO_FLOATS(pair)                                                      \
  vec2(uintBitsToFloat((pair) << 16), uintBitsToFloat((pair) & 0xffff0000u))
#define pack2 pack2_bf16
// Rounds ties away from zero, with fewer instructions. The result for NaN is
// undefined.
#define PACK2_NUMBERS(a, b)                                                   \
  (((floatBitsToUint(a) + 0x8000u) >> 16) |                                   \
   ((floatBitsToUint(b) + 0x8000u) & 0xffff0000u))
#else
#define TWO_FLOATS unpackHalf2x16
#define PACK2_NUMBERS pack2
uint pack2(float a, float b) {
  return uint(f32_to_f16(a)) | (uint(f32_to_f16(b)) << 16);
}
#endif
