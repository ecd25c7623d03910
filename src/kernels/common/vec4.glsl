// Accesses to four consecutive floats, for variants whose base address and
// strides are multiples of four items.
#pragma once

#include "common/types.glsl"

// load_vec4(p, i) and store_vec4(p, i, v), p a T_PTR, items i..i+3.
#ifdef T_IS_f32
#define VEC4_AT(p, i) Ptr_f32x4(uint64_t(p) + item_index(i) * 4).v[0]
#define UNPACK4(v) v
#define PACK4(v) v
#else
#define VEC4_AT(p, i) Ptr_u32x2(uint64_t(p) + item_index(i) * 2).v[0]
#define UNPACK4 unpack4
#define PACK4 pack4
#ifdef T_IS_bf16
vec4 unpack4(uvec2 x) {
  return uintBitsToFloat(
      uvec4(x.x << 16, x.x & 0xffff0000u, x.y << 16, x.y & 0xffff0000u));
}
uvec2 pack4(vec4 v) {
  return pack4_bf16(v);
}
#else
vec4 unpack4(uvec2 x) {
  return vec4(
      f16_to_f32(uint16_t(x.x & 0xffffu)),
      f16_to_f32(uint16_t(x.x >> 16)),
      f16_to_f32(uint16_t(x.y & 0xffffu)),
      f16_to_f32(uint16_t(x.y >> 16)));
}
uvec2 pack4(vec4 v) {
  return uvec2(
      uint(f32_to_f16(v.x)) | (uint(f32_to_f16(v.y)) << 16),
      uint(f32_to_f16(v.z)) | (uint(f32_to_f16(v.w)) << 16));
}
#endif
#endif
#define load_vec4(p, i) UNPACK4(VEC4_AT(p, i))
#define store_vec4(p, i, v) VEC4_AT(p, i) = PACK4(v)

// Items i..i+3 of a row of `n`, `fill` beyond its end. With VEC, n must be a
// multiple of four.
#if VEC
#define FETCH4(p, i, n, fill) ((i) < (n) ? load_vec4(p, i) : vec4(fill))
#define STORE4(p, i, n, v)                                                    \
  {                                                                           \
    if ((i) < (n)) {                                                          \
      store_vec4(p, i, v);                                                    \
    }                                                                         \
  }
#else
#define FETCH4(p, i, n, fill)                                                 \
  vec4(                                                                       \
      (i) < (n) ? load(p, (i)) : (fill),                                      \
      (i) + 1 < (n) ? load(p, (i) + 1) : (fill),                              \
      (i) + 2 < (n) ? load(p, (i) + 2) : (fill),                              \
      (i) + 3 < (n) ? load(p, (i) + 3) : (fill))
#define STORE4(p, i, n, v)                                                    \
  {                                                                           \
    for (uint k_ = 0; k_ < 4; ++k_) {                                         \
      if ((i) + k_ < (n)) {                                                   \
        store(p, (i) + k_, (v)[k_]);                                          \
      }                                                                       \
    }                                                                         \
  }
#endif

// Rounds as a store to T and a load would.
#ifdef T_IS_bf16
#define ROUND_TO_T(x) round_to_bf16(x)
#elif defined(T_IS_f16)
#define ROUND_TO_T(x) round_f16(x)
#else
#define ROUND_TO_T(x) (x)
#endif
#ifdef T_IS_f16
#define ROUND4_TO_T(v)                                                        \
  vec4(                                                                       \
      ROUND_TO_T((v).x), ROUND_TO_T((v).y), ROUND_TO_T((v).z), ROUND_TO_T((v).w))
#else
#define ROUND4_TO_T(v) ROUND_TO_T(v)
#endif

float sum4(vec4 v) {
  return (v.x + v.y) + (v.z + v.w);
}
bool nan4(vec4 v) {
  return any(greaterThan(
      floatBitsToUint(v) & uvec4(0x7fffffffu), uvec4(0x7f800000u)));
}
float max4(vec4 v) {
  return max(max(v.x, v.y), max(v.z, v.w));
}
