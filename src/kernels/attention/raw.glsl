// RAW is one load of a row: E items, 16 bytes with VEC, else one item. floats()
// converts STEP of them at a time. 16-bit items stay packed until used, which
// halves the registers.
#pragma once

#include "common/types.glsl"

#if VEC
#define E (16 / T_SIZE)
#define STEP 2
#define FLOATS vec2
#ifdef T_IS_f32
#define RAW vec4
#define RAW_AT(p) Ptr_f32x4(uint64_t(p)).v[0]
vec2 floats(RAW x, uint i) {
  return i == 0 ? x.xy : x.zw;
}
#else
#define RAW uvec4
#define RAW_AT(p) Ptr_u32x4(uint64_t(p)).v[0]
vec2 floats(RAW x, uint i) {
#ifdef T_IS_bf16
  return uintBitsToFloat(uvec2(x[i] << 16, x[i] & 0xffff0000u));
#elif defined(NATIVE_F16)
  return unpackHalf2x16(x[i]);
#else
  return vec2(
      f16_to_f32(uint16_t(x[i] & 0xffffu)), f16_to_f32(uint16_t(x[i] >> 16)));
#endif
}
#endif
float dot_add(vec2 a, vec2 b, float s) {
  return fma(a.y, b.y, fma(a.x, b.x, s));
}
#else
#define E 1
#define STEP 1
#define FLOATS float
#define RAW float
#define RAW_AT(p) load(p, 0)
float floats(RAW x, uint i) {
  return x;
}
float dot_add(float a, float b, float s) {
  return fma(a, b, s);
}
#endif
