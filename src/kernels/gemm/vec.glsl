// Vector loads for aligned operands.
//
// load4(p, i): items i..i+3 of a T as a vec4; the address must be aligned to
// four items. load16(p, i): 16 bytes, VEC16 items, as an array of floats.
#pragma once

#include "common/vec4.glsl"

// With native float16, unpacking pairs takes fewer instructions.
#if defined(NATIVE_F16) && defined(T_IS_f16)
vec4 floats4(uvec2 x) {
  return vec4(unpackHalf2x16(x.x), unpackHalf2x16(x.y));
}
#else
#define floats4(x) UNPACK4(x)
#endif

vec4 load4(T_PTR p, int64_t i) {
  return floats4(VEC4_AT(p, i));
}

#define VEC16 (16 / T_SIZE)
#define Vec16 float[VEC16]
Vec16 load16(T_PTR p, int64_t i) {
  uint64_t at = uint64_t(p) + uint64_t(i * T_SIZE);
#ifdef T_IS_f32
  vec4 x = Ptr_f32x4(at).v[0];
  return Vec16(x.x, x.y, x.z, x.w);
#else
  uvec4 x = Ptr_u32x4(at).v[0];
  vec4 a = floats4(x.xy), b = floats4(x.zw);
  return Vec16(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
#endif
}
// Copies VEC16 values to to[at] and after.
#define UNPACK16(from, to, at)                                                \
  [[unroll]] for (uint e_ = 0; e_ < VEC16; ++e_) {                            \
    to[(at) + e_] = from[e_];                                                 \
  }
