// Arithmetic of one lane: what the tables of instructions are written in.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rdna {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

constexpr u32 kSign = 0x80000000;
constexpr u32 kInfinity = 0x7f800000;
constexpr u32 kNan = 0x7fc00000;
constexpr u32 kQuiet = 0x00400000;

inline float f32(u32 bits) {
  return std::bit_cast<float>(bits);
}
inline u32 bits(float x) {
  return std::bit_cast<u32>(x);
}
// binary16; conversions ignore the denormal mode, as the hardware's do when
// 16-bit denormals are allowed (the only mode that run() takes).
inline float f16(u16 bits) {
  return _cvtsh_ss(bits);
}
inline u16 half(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
inline u16 half_toward_zero(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_ZERO);
}
inline float bf16(u16 x) {
  return f32(u32(x) << 16);
}

inline bool is_nan(u32 x) {
  return (x & ~kSign) > kInfinity;
}
// NaN: the first source that is one, quiet; else the hardware's default, which
// is positive (that of x86 is negative).
inline u32 nan_of(float a) {
  return a != a ? bits(a) | kQuiet : kNan;
}
inline u32 nan_of(float a, float b) {
  return a != a ? bits(a) | kQuiet : nan_of(b);
}
inline u32 nan_of(float a, float b, float c) {
  return a != a ? bits(a) | kQuiet : nan_of(b, c);
}
inline u16 nan16_of(u16 a, u16 b = 0, u16 c = 0) {
  for (u16 x : {a, b, c})
    if ((x & 0x7fff) > 0x7c00)
      return x | 0x0200;
  return 0x7e00;
}

// Denormals as zeros of their sign.
inline u32 flushed(u32 x) {
  return x & kInfinity ? x : x & kSign;
}
inline float flush(float x) {
  return f32(flushed(bits(x)));
}

// minNum and maxNum: a number beats a NaN, -0 is less than +0.
inline float min_number(float a, float b) {
  float zero = f32(bits(a) | bits(b));
  float less = a == 0 && b == 0 ? zero : a < b ? a : b;
  return b != b ? a : a != a ? b : less;
}
inline float max_number(float a, float b) {
  float zero = f32(bits(a) & bits(b));
  float more = a == 0 && b == 0 ? zero : a > b ? a : b;
  return b != b ? a : a != a ? b : more;
}
inline float median(float a, float b, float c) {
  if (a != a || b != b || c != c)
    return min_number(min_number(a, b), c);
  return max_number(min_number(a, b), min_number(max_number(a, b), c));
}
template <class T>
T median(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Rounds toward zero; out of range saturates, NaN is 0.
template <class T>
T saturate(double x) {
  if (x != x)
    return 0;
  if (x <= double(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (x >= double(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return T(x);
}
template <class T>
T clamped(i64 x) {
  return T(std::clamp<i64>(
      x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// a * b + c of binary16, rounded once. The product is exact in a double; the
// sum is rounded to odd, to the 24 bits of a float, so that the conversion to
// binary16 rounds as if from the exact sum.
inline u16 fma16(u16 a, u16 b, u16 c) {
  double product = double(f16(a)) * f16(b), addend = f16(c);
  double sum = product + addend;
  if (!std::isfinite(sum) || sum == 0)
    return half(float(sum));
  double part = sum - product;
  double error = (product - (sum - part)) + (addend - part);
  u64 word = std::bit_cast<u64>(sum);
  if (error != 0 && !(word & 1))
    word += (error > 0) == (sum > 0) ? 1 : -1;
  constexpr u64 low = (u64(1) << 29) - 1;
  word = (word & ~low) | (word & low ? low + 1 : 0);
  return half(float(std::bit_cast<double>(word)));
}

inline u32 reverse(u32 x) {
  x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
  x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
  x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
  return __builtin_bswap32(x);
}
// Leading bits that equal the sign, less one; -1 for 0 and -1.
inline u32 sign_bits(i32 x) {
  u32 y = x < 0 ? ~x : x;
  return y ? std::countl_zero(y) : -1;
}
inline u32 ones(u32 count) {
  return count >= 32 ? ~0u : (1u << count) - 1;
}
inline u64 ones64(u32 count) {
  return count >= 64 ? ~u64(0) : (u64(1) << count) - 1;
}
inline u32 field(u32 x, u32 first, u32 count) {
  return x >> first & ones(count);
}
inline i32 signed_field(i32 x, u32 first, u32 count) {
  if (count == 0)
    return 0;
  if (first + count >= 32)
    return x >> first;
  return i32(u32(x) << (32 - first - count)) >> (32 - count);
}
inline i32 signed24(u32 x) {
  return i32(x << 8) >> 8;
}

// Bit of the class of a float, as V_CMP_CLASS_F32 numbers them: signaling NaN,
// quiet NaN, -infinity, -normal, -denormal, -0, +0, ..., +infinity.
inline u32
float_class(bool negative, bool largest, bool least, u32 fraction, bool quiet) {
  if (largest)
    return fraction ? quiet : negative ? 2 : 9;
  if (least)
    return fraction ? (negative ? 4 : 7) : negative ? 5 : 6;
  return negative ? 3 : 8;
}
inline u32 float_class(u32 x) {
  u32 exponent = x >> 23 & 0xff;
  return float_class(
      x >> 31, exponent == 0xff, exponent == 0, x & 0x7fffff, x & kQuiet);
}
inline u32 float_class16(u16 x) {
  u32 exponent = x >> 10 & 0x1f;
  return float_class(
      x >> 15, exponent == 0x1f, exponent == 0, x & 0x3ff, x & 0x200);
}

// To the nearest, ties to even, whatever MODE says.
inline float nearest(float x) {
  return __builtin_roundevenf(x);
}
inline float scaled(float x, i32 power) {
  return std::ldexp(x, std::clamp(power, -400, 400));
}
inline float mantissa(float x) {
  int exponent;
  return std::isfinite(x) ? std::frexp(x, &exponent) : x;
}
inline u32 exponent_of(float x) {
  int exponent = 0;
  if (std::isfinite(x))
    std::frexp(x, &exponent);
  return exponent;
}
inline float fraction(float x) {
  return std::isinf(x) ? f32(kNan)
                       : std::min(x - std::floor(x), 0x1.fffffep-1f);
}
inline float sine(float turns) {
  return std::isinf(turns) ? f32(kNan)
                           : float(std::sin(double(turns) * 2 * M_PI));
}
inline float cosine(float turns) {
  return std::isinf(turns) ? f32(kNan)
                           : float(std::cos(double(turns) * 2 * M_PI));
}
// The transcendental unit flushes denormals whatever MODE says.
inline float reciprocal(float x) {
  return flush(1.0f / flush(x));
}
inline float reciprocal_root(float x) {
  return float(1.0 / std::sqrt(double(flush(x))));
}
inline float root(float x) {
  return std::sqrt(flush(x));
}
inline float power_of_two(float x) {
  return flush(float(std::exp2(double(x))));
}
inline float logarithm(float x) {
  return float(std::log2(double(flush(x))));
}

} // namespace rdna
