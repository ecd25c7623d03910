// Classification of floats, and complex64 (a vec2) as a number.
#pragma once

const float NAN_F = uintBitsToFloat(0x7fc00000u);
const float INF_F = uintBitsToFloat(0x7f800000u);

// A constant that stays in a register, because the top bit of a length, which
// is 0, is ORed in. With two constants, NVIDIA's compiler needs two
// instructions for an AND-OR.
#define IN_REGISTER(constant, length) ((constant) | ((length) >> 31))

// 64-bit x < y by halves: Mesa 22.3 miscompiles comparisons of a widened 32-bit
// value with a constant.
#define LESS_BY_HALVES_(T, HALVES, UNPACK)                                    \
  bool is_less(T x, T y) {                                                    \
    HALVES a = UNPACK(x), b = UNPACK(y);                                      \
    return a.y < b.y || (a.y == b.y && uint(a.x) < uint(b.x));                \
  }
LESS_BY_HALVES_(int64_t, ivec2, unpackInt2x32)
LESS_BY_HALVES_(uint64_t, uvec2, unpackUint2x32)

// Tested by bits, because compilers may assume that NaN and Inf do not occur.
bool is_nan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}
bool is_inf(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u;
}
bool is_finite(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
}
bool is_zero(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) == 0u;
}
bool sign_bit(float x) {
  return (floatBitsToUint(x) & 0x80000000u) != 0u;
}

#if FLOAT64
const double NAN_D = NAN_F;
const double INF_D = INF_F;

bool sign_bit(double x) {
  return (unpackDouble2x32(x).y & 0x80000000u) != 0u;
}
// The bits without the sign.
uvec2 magnitude_bits(double x) {
  return unpackDouble2x32(x) & uvec2(0xffffffffu, 0x7fffffffu);
}
bool is_nan(double x) {
  uvec2 u = magnitude_bits(x);
  return u.y > 0x7ff00000u || (u.y == 0x7ff00000u && u.x != 0u);
}
bool is_inf(double x) {
  return magnitude_bits(x) == uvec2(0u, 0x7ff00000u);
}
bool is_finite(double x) {
  return magnitude_bits(x).y < 0x7ff00000u;
}
bool is_zero(double x) {
  return magnitude_bits(x) == uvec2(0u);
}
#endif

bool is_nan(vec2 z) {
  return is_nan(z.x) || is_nan(z.y);
}
vec2 c_mul(vec2 a, vec2 b) {
  return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// MLX orders complex numbers by real, then imaginary part.
bool c_less(vec2 a, vec2 b) {
  return a.x < b.x || (a.x == b.x && a.y < b.y);
}
