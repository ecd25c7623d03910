// Conversions between values and storage bits: FROM_BITS(P_PTR)(bits) and
// TO_BITS(P_PTR)(value), with the bits in the low bytes of a uvec2.
#pragma once

#include "common/types.glsl"

// Selected by name, because functions cannot be overloaded on their result
// type.
#define BITS_PASTE_(a, b) a##b
#define BITS_PASTE(a, b) BITS_PASTE_(a, b)
#define FROM_BITS(PTR) BITS_PASTE(from_bits_, PTR)
#define TO_BITS(PTR) BITS_PASTE(to_bits_, PTR)

#define LOW_8(b) uint8_t(b.x)
#define LOW_16(b) uint16_t(b.x)
#define LOW_32(b) b.x
#define LOW_64(b) b
#define WIDEN_8(x) uvec2(uint(x), 0u)
#define WIDEN_16(x) uvec2(uint(x), 0u)
#define WIDEN_32(x) uvec2(x, 0u)
#define WIDEN_64(x) x
#define BITS_(D, VALUE, BITS, FROM, TO)                                       \
  VALUE from_bits_Ptr_##D(uvec2 b) {                                          \
    return FROM(LOW_##BITS(b));                                               \
  }                                                                           \
  uvec2 to_bits_Ptr_##D(VALUE v) {                                            \
    return WIDEN_##BITS(TO(v));                                               \
  }
EACH_DTYPE(BITS_)
