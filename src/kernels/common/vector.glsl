// Accesses to four adjacent items of any type, as an array: LOAD_FOUR(PTR, p,
// i) and STORE_FOUR(PTR, p, i, v) for items 4 i to 4 i + 3 of the pointer type
// PTR. The host checks that addresses are multiples of min(16, 4 items) bytes
// (by_fours() in ops/view.h).
#pragma once

#include "common/types.glsl"

// Selected by name, because functions cannot be overloaded on reference types.
#define PASTE4_(a, b) a##b
#define PASTE4(a, b) PASTE4_(a, b)
#define LOAD_FOUR(PTR, p, i) PASTE4(load4_, PTR)(uint64_t(p), uint64_t(i))
#define STORE_FOUR(PTR, p, i, x)                                              \
  PASTE4(store4_, PTR)(uint64_t(p), uint64_t(i), x)

#define AT_(WORD, p, i, BYTES) WORD((p) + (i) * uint64_t(BYTES)).v[0]

uint join16_(uint16_t low, uint16_t high) {
  return uint(low) | (uint(high) << 16);
}

#define ACCESS4_8(NAME, VALUE, FROM, TO)                                      \
  VALUE[4] load4_##NAME(uint64_t p, uint64_t i) {                             \
    u8vec4 w = unpack8(AT_(Ptr_u32, p, i, 4));                                \
    return VALUE[4](FROM(w.x), FROM(w.y), FROM(w.z), FROM(w.w));              \
  }                                                                           \
  void store4_##NAME(uint64_t p, uint64_t i, VALUE v[4]) {                    \
    AT_(Ptr_u32, p, i, 4) =                                                   \
        pack32(u8vec4(TO(v[0]), TO(v[1]), TO(v[2]), TO(v[3])));               \
  }
#define ACCESS4_16(NAME, VALUE, FROM, TO)                                     \
  VALUE[4] load4_##NAME(uint64_t p, uint64_t i) {                             \
    uvec2 w = AT_(Ptr_u32x2, p, i, 8);                                        \
    return VALUE[4](                                                          \
        FROM(uint16_t(w.x & 0xffffu)),                                        \
        FROM(uint16_t(w.x >> 16)),                                            \
        FROM(uint16_t(w.y & 0xffffu)),                                        \
        FROM(uint16_t(w.y >> 16)));                                           \
  }                                                                           \
  void store4_##NAME(uint64_t p, uint64_t i, VALUE v[4]) {                    \
    AT_(Ptr_u32x2, p, i, 8) =                                                 \
        uvec2(join16_(TO(v[0]), TO(v[1])), join16_(TO(v[2]), TO(v[3])));      \
  }
// bf16 is converted in pairs.
float[4] load4_Ptr_bf16(uint64_t p, uint64_t i) {
  uvec2 w = AT_(Ptr_u32x2, p, i, 8);
  return float[4](
      uintBitsToFloat(w.x << 16),
      uintBitsToFloat(w.x & 0xffff0000u),
      uintBitsToFloat(w.y << 16),
      uintBitsToFloat(w.y & 0xffff0000u));
}
void store4_Ptr_bf16(uint64_t p, uint64_t i, float v[4]) {
  AT_(Ptr_u32x2, p, i, 8) = pack4_bf16(vec4(v[0], v[1], v[2], v[3]));
}
#define ACCESS4_32(NAME, VALUE, FROM, TO)                                     \
  VALUE[4] load4_##NAME(uint64_t p, uint64_t i) {                             \
    uvec4 w = AT_(Ptr_u32x4, p, i, 16);                                       \
    return VALUE[4](FROM(w.x), FROM(w.y), FROM(w.z), FROM(w.w));              \
  }                                                                           \
  void store4_##NAME(uint64_t p, uint64_t i, VALUE v[4]) {                    \
    AT_(Ptr_u32x4, p, i, 16) = uvec4(TO(v[0]), TO(v[1]), TO(v[2]), TO(v[3])); \
  }
#define ACCESS4_64(NAME, VALUE, FROM, TO)                                     \
  VALUE[4] load4_##NAME(uint64_t p, uint64_t i) {                             \
    uvec4 low = AT_(Ptr_u32x4, p, i, 32);                                     \
    uvec4 high = AT_(Ptr_u32x4, p + 16ul, i, 32);                             \
    return VALUE[4](FROM(low.xy), FROM(low.zw), FROM(high.xy), FROM(high.zw)); \
  }                                                                           \
  void store4_##NAME(uint64_t p, uint64_t i, VALUE v[4]) {                    \
    AT_(Ptr_u32x4, p, i, 32) = uvec4(TO(v[0]), TO(v[1]));                     \
    AT_(Ptr_u32x4, p + 16ul, i, 32) = uvec4(TO(v[2]), TO(v[3]));              \
  }
#define ACCESS4_(D, VALUE, BITS, FROM, TO)                                    \
  ACCESS4_##BITS(Ptr_##D, VALUE, FROM, TO)
EACH_PLAIN_DTYPE(ACCESS4_)
EACH_SINGLY_CODED_DTYPE(ACCESS4_)
