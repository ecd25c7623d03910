// Four neighbouring items in one access, as an array: LOAD4(PTR, p, i) and
// STORE4(PTR, p, i, v) for items 4 i to 4 i + 3 of the pointer type PTR. The
// host checks that addresses are multiples of min(16, 4 items) bytes
// (ops/elementwise.h).
#ifndef VECTOR_GLSL
#define VECTOR_GLSL

#include "common/types.glsl"

// Chosen by name: functions cannot be overloaded on reference types.
#define PASTE4__(a, b) a##b
#define PASTE4_(a, b) PASTE4__(a, b)
#define LOAD4(PTR, p, i) PASTE4_(load4_, PTR)(uint64_t(p), uint64_t(i))
#define STORE4(PTR, p, i, x)                                                  \
  PASTE4_(store4_, PTR)(uint64_t(p), uint64_t(i), x)

#define AT_(WORD, p, i, BYTES) WORD((p) + (i) * uint64_t(BYTES)).v[0]

// 1 byte
#define ACCESS4_8(PTR, VALUE, TO, FROM)                                       \
  VALUE[4] load4_##PTR(uint64_t p, uint64_t i) {                              \
    u8vec4 w = unpack8(AT_(Ptr_u32, p, i, 4));                                \
    return VALUE[4](TO(w.x), TO(w.y), TO(w.z), TO(w.w));                      \
  }                                                                           \
  void store4_##PTR(uint64_t p, uint64_t i, VALUE v[4]) {                     \
    AT_(Ptr_u32, p, i, 4) =                                                   \
        pack32(u8vec4(FROM(v[0]), FROM(v[1]), FROM(v[2]), FROM(v[3])));       \
  }
bool to_bool4_(uint8_t x) {
  return uint(x) != 0u;
}
uint8_t of_bool4_(bool x) {
  return uint8_t(x ? 1u : 0u);
}
ACCESS4_8(Ptr_bool, bool, to_bool4_, of_bool4_)
ACCESS4_8(Ptr_u8, uint8_t, uint8_t, uint8_t)
ACCESS4_8(Ptr_i8, int8_t, int8_t, uint8_t)

// 2 bytes
uint join16_(uint16_t low, uint16_t high) {
  return uint(low) | (uint(high) << 16);
}
#define ACCESS4_16(PTR, VALUE, TO, FROM)                                      \
  VALUE[4] load4_##PTR(uint64_t p, uint64_t i) {                              \
    uvec2 w = AT_(Ptr_u32x2, p, i, 8);                                        \
    return VALUE[4](                                                          \
        TO(uint16_t(w.x & 0xffffu)),                                          \
        TO(uint16_t(w.x >> 16)),                                              \
        TO(uint16_t(w.y & 0xffffu)),                                          \
        TO(uint16_t(w.y >> 16)));                                             \
  }                                                                           \
  void store4_##PTR(uint64_t p, uint64_t i, VALUE v[4]) {                     \
    AT_(Ptr_u32x2, p, i, 8) = uvec2(                                          \
        join16_(FROM(v[0]), FROM(v[1])), join16_(FROM(v[2]), FROM(v[3])));    \
  }
ACCESS4_16(Ptr_u16, uint16_t, uint16_t, uint16_t)
ACCESS4_16(Ptr_i16, int16_t, int16_t, uint16_t)
ACCESS4_16(Ptr_f16, float, f16_to_f32, f32_to_f16)
ACCESS4_16(Ptr_bf16, float, bf16_to_f32, f32_to_bf16)

// 4 bytes
#define ACCESS4_32(PTR, VALUE, TO, FROM)                                      \
  VALUE[4] load4_##PTR(uint64_t p, uint64_t i) {                              \
    uvec4 w = AT_(Ptr_u32x4, p, i, 16);                                       \
    return VALUE[4](TO(w.x), TO(w.y), TO(w.z), TO(w.w));                      \
  }                                                                           \
  void store4_##PTR(uint64_t p, uint64_t i, VALUE v[4]) {                     \
    AT_(Ptr_u32x4, p, i, 16) =                                                \
        uvec4(FROM(v[0]), FROM(v[1]), FROM(v[2]), FROM(v[3]));                \
  }
ACCESS4_32(Ptr_u32, uint32_t, uint, uint)
ACCESS4_32(Ptr_i32, int32_t, int, uint)
ACCESS4_32(Ptr_f32, float, uintBitsToFloat, floatBitsToUint)

// 8 bytes
uint64_t u64_of_(uvec2 w) {
  return packUint2x32(w);
}
int64_t i64_of_(uvec2 w) {
  return int64_t(packUint2x32(w));
}
uvec2 of_64_(uint64_t x) {
  return unpackUint2x32(x);
}
uvec2 of_64_(int64_t x) {
  return unpackUint2x32(uint64_t(x));
}
#define ACCESS4_64(PTR, VALUE, TO, FROM)                                      \
  VALUE[4] load4_##PTR(uint64_t p, uint64_t i) {                              \
    uvec4 low = AT_(Ptr_u32x4, p, i, 32);                                     \
    uvec4 high = AT_(Ptr_u32x4, p + 16ul, i, 32);                   \
    return VALUE[4](TO(low.xy), TO(low.zw), TO(high.xy), TO(high.zw));        \
  }                                                                           \
  void store4_##PTR(uint64_t p, uint64_t i, VALUE v[4]) {                     \
    AT_(Ptr_u32x4, p, i, 32) = uvec4(FROM(v[0]), FROM(v[1]));                 \
    AT_(Ptr_u32x4, p + 16ul, i, 32) =                               \
        uvec4(FROM(v[2]), FROM(v[3]));                                        \
  }
ACCESS4_64(Ptr_u64, uint64_t, u64_of_, of_64_)
ACCESS4_64(Ptr_i64, int64_t, i64_of_, of_64_)
ACCESS4_64(Ptr_c64, vec2, uintBitsToFloat, floatBitsToUint)

#endif
