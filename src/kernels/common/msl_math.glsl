// MSL's numeric functions that GLSL lacks, leaves undefined or computes less
// accurately (MSL specification 6.5 to 6.7), with the prefix msl_: for float
// and its vectors, int and uint.
#pragma once

#include "common/complex.glsl"
#include "common/math.glsl"
#include "common/power.glsl"
#include "common/quotient.glsl"
#include "common/types.glsl"

// F for a scalar type and its vectors.
#define EACH_WIDTH_(F, SCALAR, VECTOR)                                        \
  F(SCALAR)                                                                   \
  F(VECTOR##2)                                                                \
  F(VECTOR##3)                                                                \
  F(VECTOR##4)

// ---- operations that are not contracted -----------------------------------------

#define EXACT_(T, NAME, OP)                                                   \
  T NAME(T x, T y) {                                                          \
    precise T result = x OP y;                                                \
    return result;                                                            \
  }
#define EXACT_ALL_(NAME, OP)                                                  \
  EXACT_(float, NAME, OP)                                                     \
  EXACT_(vec2, NAME, OP)                                                      \
  EXACT_(vec3, NAME, OP)                                                      \
  EXACT_(vec4, NAME, OP)
EXACT_ALL_(msl_exact_add, +)
EXACT_ALL_(msl_exact_subtract, -)
EXACT_ALL_(msl_exact_multiply, *)

// ---- vectors by component -------------------------------------------------------

#define OF_ONE_(NAME, OUT, IN)                                                \
  OUT##2 NAME(IN##2 x) { return OUT##2(NAME(x.x), NAME(x.y)); }               \
  OUT##3 NAME(IN##3 x) { return OUT##3(NAME(x.x), NAME(x.y), NAME(x.z)); }    \
  OUT##4 NAME(IN##4 x) {                                                      \
    return OUT##4(NAME(x.x), NAME(x.y), NAME(x.z), NAME(x.w));                \
  }
#define OF_TWO_(NAME, OUT, IN, IN2)                                           \
  OUT##2 NAME(IN##2 x, IN2##2 y) {                                            \
    return OUT##2(NAME(x.x, y.x), NAME(x.y, y.y));                            \
  }                                                                           \
  OUT##3 NAME(IN##3 x, IN2##3 y) {                                            \
    return OUT##3(NAME(x.x, y.x), NAME(x.y, y.y), NAME(x.z, y.z));            \
  }                                                                           \
  OUT##4 NAME(IN##4 x, IN2##4 y) {                                            \
    return OUT##4(                                                            \
        NAME(x.x, y.x), NAME(x.y, y.y), NAME(x.z, y.z), NAME(x.w, y.w));      \
  }
#define FLOAT_1_(NAME, EXPRESSION)                                            \
  float NAME(float x) { return EXPRESSION; }                                  \
  OF_ONE_(NAME, vec, vec)
#define FLOAT_2_(NAME, EXPRESSION)                                            \
  float NAME(float x, float y) { return EXPRESSION; }                         \
  OF_TWO_(NAME, vec, vec, vec)
#define ASKS_1_(NAME, EXPRESSION)                                             \
  bool NAME(float x) { return EXPRESSION; }                                   \
  OF_ONE_(NAME, bvec, vec)
#define ASKS_2_(NAME, EXPRESSION)                                             \
  bool NAME(float x, float y) { return EXPRESSION; }                          \
  OF_TWO_(NAME, bvec, vec, vec)

// ---- floats --------------------------------------------------------------------

// sin and cos of pi x, exact at quarter turns.
float msl_circle_(float x, int quarter) {
  float q = roundEven(2.0 * x);
  float r = 3.14159274 * (x - 0.5 * q);
  float turns = q - 4.0 * floor(0.25 * q);
  int n = (int(turns) + quarter) & 3;
  float y = (n & 1) != 0 ? cos_kernel(r, 0.0) : sin_kernel(r, 0.0);
  return is_finite(x) ? (n & 2) != 0 ? -y : y : NAN_F;
}
float msl_half_away_(float x) {
  float t = trunc(x);
  return abs(x - t) >= 0.5 ? t + copy_sign(1.0, x) : t;
}

FLOAT_1_(msl_acos, math_acos(x))
FLOAT_1_(msl_acosh, math_acosh(x))
FLOAT_1_(msl_asin, math_asin(x))
FLOAT_1_(msl_asinh, math_asinh(x))
FLOAT_1_(msl_atan, math_atan(x))
FLOAT_1_(msl_atanh, math_atanh(x))
FLOAT_1_(msl_cos, math_cos(x))
FLOAT_1_(msl_cosh, math_cosh(x))
FLOAT_1_(msl_cospi, msl_circle_(x, 1))
FLOAT_1_(msl_erf, math_erf(x))
FLOAT_1_(msl_erfinv, math_erfinv(x))
FLOAT_1_(msl_exp, math_exp(x))
FLOAT_1_(msl_exp10, math_pow(10.0, x))
FLOAT_1_(msl_exp2, math_exp2(x))
FLOAT_1_(msl_expm1, math_expm1(x))
FLOAT_1_(msl_fract, is_finite(x) ? min(x - floor(x), 0.99999994) : is_nan(x) ? x : 0.0)
FLOAT_1_(msl_log, math_log(x))
FLOAT_1_(msl_log10, math_log10(x))
FLOAT_1_(msl_log1p, math_log1p(x))
FLOAT_1_(msl_log2, math_log2(x))
FLOAT_1_(msl_round, is_finite(x) ? msl_half_away_(x) : x)
FLOAT_1_(msl_rsqrt, math_rsqrt(x))
FLOAT_1_(msl_sign, is_nan(x) ? 0.0 : sign(x))
FLOAT_1_(msl_sin, math_sin(x))
FLOAT_1_(msl_sinh, math_sinh(x))
FLOAT_1_(msl_sinpi, msl_circle_(x, 0))
FLOAT_1_(msl_sqrt, math_sqrt(x))
FLOAT_1_(msl_tan, math_tan(x))
FLOAT_1_(msl_tanh, math_tanh(x))
FLOAT_1_(msl_tanpi, msl_sinpi(x) / msl_cospi(x))

// Return the other operand if one is NaN.
FLOAT_2_(msl_max, is_nan(x) || y > x ? y : x)
FLOAT_2_(msl_min, is_nan(x) || y < x ? y : x)
FLOAT_2_(msl_atan2, math_atan2(x, y))
FLOAT_2_(msl_copysign, copy_sign(x, y))
FLOAT_2_(msl_divide, math_divide(x, y))
FLOAT_2_(msl_fdim, is_nan(x) || is_nan(y) ? NAN_F : x > y ? x - y : 0.0)
FLOAT_2_(msl_fmod, math_fmod(x, y))
FLOAT_2_(msl_hypot, math_hypot(x, y))
FLOAT_2_(msl_pow, math_pow(x, y))

#define FLOAT_3_(NAME, EXPRESSION)                                            \
  float NAME(float x, float y, float z) { return EXPRESSION; }                \
  vec2 NAME(vec2 x, vec2 y, vec2 z) { return EXPRESSION; }                    \
  vec3 NAME(vec3 x, vec3 y, vec3 z) { return EXPRESSION; }                    \
  vec4 NAME(vec4 x, vec4 y, vec4 z) { return EXPRESSION; }
FLOAT_3_(msl_max3, msl_max(msl_max(x, y), z))
FLOAT_3_(msl_min3, msl_min(msl_min(x, y), z))
FLOAT_3_(
    msl_median3,
    msl_max(msl_min(x, y), msl_min(msl_max(x, y), z)))
FLOAT_3_(msl_clamp, msl_min(msl_max(x, y), z))
FLOAT_1_(msl_saturate, msl_min(msl_max(x, 0.0), 1.0))

ASKS_1_(msl_isfinite, is_finite(x))
ASKS_1_(msl_isinf, is_inf(x))
ASKS_1_(msl_isnan, is_nan(x))
ASKS_1_(msl_isnormal, is_finite(x) && (floatBitsToUint(x) & 0x7f800000u) != 0u)
ASKS_1_(msl_signbit, sign_bit(x))
ASKS_2_(msl_isordered, !is_nan(x) && !is_nan(y))
ASKS_2_(msl_isunordered, is_nan(x) || is_nan(y))

// x = fraction 2^exponent with a fraction in [1/2, 1); 0, Inf and NaN stay.
int msl_frexp_exponent(float x) {
  uint u = floatBitsToUint(x) & 0x7fffffffu;
  return u == 0u || u >= 0x7f800000u ? 0
      : u < 0x00800000u              ? findMSB(u) - 148
                                     : int(u >> 23) - 126;
}
float msl_frexp_fraction(float x) {
  uint u = floatBitsToUint(x) & 0x7fffffffu;
  if (u == 0u || u >= 0x7f800000u) {
    return x;
  }
  // Subnormals are normalized through an integer conversion of their bits.
  u = u < 0x00800000u ? floatBitsToUint(float(u)) : u;
  return copy_sign(uintBitsToFloat((u & 0x7fffffu) | 0x3f000000u), x);
}
int msl_ilogb(float x) {
  uint u = floatBitsToUint(x) & 0x7fffffffu;
  return u == 0u ? int(0x80000000u)
      : u >= 0x7f800000u ? 0x7fffffff
                         : msl_frexp_exponent(x) - 1;
}
// Two steps, each in range; 2^-300 times any float is 0.
float msl_ldexp(float x, int n) {
  n = clamp(n, -400, 400);
  int a = clamp(n, -200, 200);
  return scale_pow2(scale_pow2(x, a), n - a);
}
OF_ONE_(msl_frexp_exponent, ivec, vec)
OF_ONE_(msl_frexp_fraction, vec, vec)
OF_TWO_(msl_ldexp, vec, vec, ivec)

#define LENGTHS_(T)                                                           \
  float msl_length_squared(T x) { return dot(x, x); }                         \
  float msl_distance_squared(T x, T y) { return dot(x - y, x - y); }
EACH_WIDTH_(LENGTHS_, float, vec)

vec2 msl_c_add(vec2 x, vec2 y) { return x + y; }
vec2 msl_c_subtract(vec2 x, vec2 y) { return x - y; }
vec2 msl_c_multiply(vec2 x, vec2 y) { return c_mul(x, y); }
vec2 msl_c_divide(vec2 x, vec2 y) { return c_div(x, y); }

// ---- integers ------------------------------------------------------------------

// Remainder of truncated division; GLSL's % is undefined for negative operands.
#define REM_(T) T msl_rem(T x, T y) { return x - y * (x / y); }
EACH_WIDTH_(REM_, int, ivec)
EACH_WIDTH_(REM_, int8_t, i8vec)
EACH_WIDTH_(REM_, int16_t, i16vec)

int64_t msl_quotient(int64_t x, int64_t y) { return quotient(x, y); }
uint64_t msl_quotient(uint64_t x, uint64_t y) { return quotient(x, y); }
OF_TWO_(msl_quotient, i64vec, i64vec, i64vec)
OF_TWO_(msl_quotient, u64vec, u64vec, u64vec)
#define WIDE_REM_(T) T msl_rem(T x, T y) { return x - y * msl_quotient(x, y); }
EACH_WIDTH_(WIDE_REM_, int64_t, i64vec)
EACH_WIDTH_(WIDE_REM_, uint64_t, u64vec)

// Bit functions count in the type's own width; clz and ctz of 0 return it.
// popcount works by halves: for a sign-extended byte or short, NVIDIA's
// compiler counts the copies of the sign even after `& 0xffu`.
uint msl_popcount(uint x) {
  return uint(bitCount(x << 16) + bitCount(x & 0xffff0000u));
}
uint msl_clz(uint x) { return uint(31 - findMSB(x)); }
uint msl_ctz(uint x) { return x == 0u ? 32u : uint(findLSB(x)); }
uint msl_reverse_bits(uint x) { return bitfieldReverse(x); }
uint64_t msl_popcount(uint64_t x) {
  uvec2 w = unpackUint2x32(x);
  return uint64_t(msl_popcount(w.x) + msl_popcount(w.y));
}
uint64_t msl_clz(uint64_t x) {
  uvec2 w = unpackUint2x32(x);
  return uint64_t(w.y != 0u ? msl_clz(w.y) : 32u + msl_clz(w.x));
}
uint64_t msl_ctz(uint64_t x) {
  uvec2 w = unpackUint2x32(x);
  return uint64_t(w.x != 0u ? msl_ctz(w.x) : 32u + msl_ctz(w.y));
}
uint64_t msl_reverse_bits(uint64_t x) {
  uvec2 w = unpackUint2x32(x);
  return packUint2x32(uvec2(bitfieldReverse(w.y), bitfieldReverse(w.x)));
}
OF_ONE_(msl_popcount, uvec, uvec)
OF_ONE_(msl_clz, uvec, uvec)
OF_ONE_(msl_ctz, uvec, uvec)
OF_ONE_(msl_reverse_bits, uvec, uvec)
// Rotates the low `bits` to the left; the caller drops the bits above.
uint msl_rotate(uint x, uint n, uint bits) {
  n &= bits - 1u;
  return n == 0u ? x : (x << n) | (x >> (bits - n));
}
uint64_t msl_rotate(uint64_t x, uint64_t n, uint bits) {
  n &= uint64_t(bits - 1u);
  return n == 0ul ? x : (x << n) | (x >> (uint64_t(bits) - n));
}

uint msl_mulhi(uint x, uint y) {
  return uint((uint64_t(x) * uint64_t(y)) >> 32);
}
int msl_mulhi(int x, int y) {
  return int((int64_t(x) * int64_t(y)) >> 32);
}
uint msl_absdiff(uint x, uint y) { return max(x, y) - min(x, y); }
int msl_absdiff(int x, int y) { return max(x, y) - min(x, y); }
uint msl_addsat(uint x, uint y) { return x + min(y, ~x); }
int msl_addsat(int x, int y) {
  int64_t s = int64_t(x) + int64_t(y);
  return int(clamp(s, int64_t(-2147483647l - 1l), int64_t(2147483647l)));
}
uint msl_subsat(uint x, uint y) { return x - min(x, y); }
int msl_subsat(int x, int y) {
  int64_t s = int64_t(x) - int64_t(y);
  return int(clamp(s, int64_t(-2147483647l - 1l), int64_t(2147483647l)));
}
uint64_t msl_mulhi(uint64_t x, uint64_t y) {
  uvec2 a = unpackUint2x32(x), b = unpackUint2x32(y);
  uint64_t low = uint64_t(a.x) * uint64_t(b.x);
  uint64_t left = uint64_t(a.y) * uint64_t(b.x) + (low >> 32);
  uint64_t right = uint64_t(a.x) * uint64_t(b.y) + (left & 0xfffffffful);
  return uint64_t(a.y) * uint64_t(b.y) + (left >> 32) + (right >> 32);
}
int64_t msl_mulhi(int64_t x, int64_t y) {
  uint64_t high = msl_mulhi(uint64_t(x), uint64_t(y));
  high -= x < 0l ? uint64_t(y) : 0ul;
  high -= y < 0l ? uint64_t(x) : 0ul;
  return int64_t(high);
}
uint64_t msl_absdiff(uint64_t x, uint64_t y) { return max(x, y) - min(x, y); }
int64_t msl_absdiff(int64_t x, int64_t y) { return max(x, y) - min(x, y); }
uint64_t msl_addsat(uint64_t x, uint64_t y) { return x + min(y, ~x); }
uint64_t msl_subsat(uint64_t x, uint64_t y) { return x - min(x, y); }
// Saturated value of an overflowing sum.
int64_t msl_end_(int64_t x) {
  return int64_t(x < 0l ? 0x8000000000000000ul : 0x7ffffffffffffffful);
}
int64_t msl_addsat(int64_t x, int64_t y) {
  int64_t s = x + y;
  return ((x ^ s) & (y ^ s)) < 0l ? msl_end_(x) : s;
}
int64_t msl_subsat(int64_t x, int64_t y) {
  int64_t s = x - y;
  return ((x ^ y) & (x ^ s)) < 0l ? msl_end_(x) : s;
}
#define LONG_INTEGER_(T)                                                      \
  T msl_hadd(T x, T y) { return (x & y) + ((x ^ y) >> 1); }                   \
  T msl_rhadd(T x, T y) { return (x | y) - ((x ^ y) >> 1); }                  \
  T msl_madhi(T x, T y, T z) { return msl_mulhi(x, y) + z; }                  \
  T msl_mul(T x, T y) { return x * y; }                                       \
  T msl_mad(T x, T y, T z) { return x * y + z; }                              \
  T msl_extract_bits(T x, uint at, uint n) {                                  \
    return n == 0u ? T(0) : (x << T(64u - at - n)) >> T(64u - n);             \
  }                                                                           \
  T msl_insert_bits(T x, T y, uint at, uint n) {                              \
    uint64_t ones = n == 0u ? 0ul : ~0ul >> uint64_t(64u - n);                \
    T mask = T(ones << uint64_t(at));                                         \
    return (x & ~mask) | ((y << T(at)) & mask);                               \
  }
LONG_INTEGER_(int64_t)
LONG_INTEGER_(uint64_t)
#define WIDE_INTEGER_(T, WIDE)                                                \
  T msl_hadd(T x, T y) { return T((WIDE(x) + WIDE(y)) >> 1); }                \
  T msl_rhadd(T x, T y) { return T((WIDE(x) + WIDE(y) + WIDE(1)) >> 1); }     \
  T msl_madhi(T x, T y, T z) { return msl_mulhi(x, y) + z; }                  \
  T msl_mul(T x, T y) { return x * y; }                                       \
  T msl_mad(T x, T y, T z) { return x * y + z; }                              \
  T msl_extract_bits(T x, uint at, uint n) {                                  \
    return bitfieldExtract(x, int(at), int(n));                               \
  }                                                                           \
  T msl_insert_bits(T x, T y, uint at, uint n) {                              \
    return bitfieldInsert(x, y, int(at), int(n));                             \
  }
WIDE_INTEGER_(int, int64_t)
WIDE_INTEGER_(uint, uint64_t)

// ---- comparisons of 64-bit integers ---------------------------------------------

OF_TWO_(is_less, bvec, i64vec, i64vec)
OF_TWO_(is_less, bvec, u64vec, u64vec)
int64_t msl_abs(int64_t x) {
  return is_less(x, 0l) ? -x : x;
}
OF_ONE_(msl_abs, i64vec, i64vec)
