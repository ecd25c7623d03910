// Loads of several consecutive items at once, for aligned operands only.
//
// load4(p, i): items i..i+3 of a T as a vec4; the address must be aligned to
// four items. load16(p, i): VEC16 of them, spread by UNPACK16.
#ifndef GEMM_VEC_GLSL
#define GEMM_VEC_GLSL

vec2 bf16x2_to_f32(uint x) {
  return vec2(uintBitsToFloat(x << 16), uintBitsToFloat(x & 0xffff0000u));
}
#ifdef NATIVE_F16
vec2 f16x2_to_f32(uint x) {
  return unpackHalf2x16(x);
}
#else
vec2 f16x2_to_f32(uint x) {
  return vec2(f16_to_f32(uint16_t(x & 0xffffu)), f16_to_f32(uint16_t(x >> 16)));
}
#endif

// T's own forms: functions cannot be overloaded on reference types.
#ifdef T_IS_f32
vec4 unpack4(vec4 x) {
  return x;
}
#define LOAD4_PTR Ptr_f32x4
#define LOAD16_PTR Ptr_f32x4
#else
#ifdef T_IS_bf16
#define UNPACK2 bf16x2_to_f32
#else
#define UNPACK2 f16x2_to_f32
#endif
vec4 unpack4(uvec2 x) {
  return vec4(UNPACK2(x.x), UNPACK2(x.y));
}
#define LOAD4_PTR Ptr_u32x2
#define LOAD16_PTR Ptr_u32x4
#endif

vec4 load4(T_PTR p, int64_t i) {
  return unpack4(LOAD4_PTR(uint64_t(p) + uint64_t(i * T_SIZE)).v[0]);
}

// 16 bytes as floats; eight of them for 16-bit types.
struct Vec16_4 {
  vec4 a;
};
struct Vec16_8 {
  vec4 a, b;
};
#ifdef T_IS_f32
Vec16_4 load16(T_PTR p, int64_t i) {
  return Vec16_4(LOAD16_PTR(uint64_t(p) + uint64_t(i * T_SIZE)).v[0]);
}
#else
Vec16_8 load16(T_PTR p, int64_t i) {
  uvec4 x = LOAD16_PTR(uint64_t(p) + uint64_t(i * T_SIZE)).v[0];
  return Vec16_8(
      vec4(UNPACK2(x.x), UNPACK2(x.y)), vec4(UNPACK2(x.z), UNPACK2(x.w)));
}
#endif
#define UNPACK16_4(from, to, at)                                              \
  to[at] = from.a.x; to[at + 1] = from.a.y;                                   \
  to[at + 2] = from.a.z; to[at + 3] = from.a.w;
#define UNPACK16_8(from, to, at)                                              \
  UNPACK16_4(from, to, at)                                                    \
  to[at + 4] = from.b.x; to[at + 5] = from.b.y;                               \
  to[at + 6] = from.b.z; to[at + 7] = from.b.w;

// Items in 16 bytes of T, and how to spread them over an array.
#if T_SIZE == 4
#define VEC16 4
#define UNPACK16 UNPACK16_4
#define Vec16 Vec16_4
#else
#define VEC16 8
#define UNPACK16 UNPACK16_8
#define Vec16 Vec16_8
#endif

#endif
