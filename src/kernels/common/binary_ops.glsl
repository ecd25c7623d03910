// Binary primitives, named like MLX's primitives and overloaded by value type;
// used by binary.comp and the generated kernels of src/jit.
#pragma once

#include "common/power.glsl"
#include "common/quotient.glsl"
#include "common/unary_ops.glsl"

#define BINARY_(T, NAME, RESULT)                                              \
  T NAME(T x, T y) { return RESULT; }
#define COMPARE_(T, NAME, RESULT)                                             \
  bool NAME(T x, T y) { return RESULT; }

// ---- integers --------------------------------------------------------------

// Division by zero gives 0 and its remainder is x, as on MLX's CPU. The
// quotient by -1 is written out, because INT_MIN / -1 traps on some processors.
#define BINARY_OPS_SIGNED(T)                                                  \
  T Divide(T x, T y) {                                                        \
    T d = (y == T(0) || y == T(-1)) ? T(1) : y;                               \
    T q = quotient(x, d);                                                     \
    return y == T(0) ? T(0) : y == T(-1) ? T(T(0) - q) : q;                   \
  }                                                                           \
  T FloorDivide(T x, T y) {                                                   \
    T q = Divide(x, y);                                                       \
    T r = T(x - T(q * y));                                                    \
    bool lower = y != T(0) && r != T(0) &&                                    \
        is_less(r, T(0)) != is_less(y, T(0));                                 \
    return lower ? T(q - T(1)) : q;                                           \
  }                                                                           \
  T Remainder(T x, T y) {                                                     \
    T r = T(x - T(Divide(x, y) * y));                                         \
    bool wrong = y != T(0) && r != T(0) &&                                    \
        is_less(r, T(0)) != is_less(y, T(0));                                 \
    return wrong ? T(r + y) : r;                                              \
  }
#define BINARY_OPS_UNSIGNED(T)                                                \
  T Divide(T x, T y) {                                                        \
    return y == T(0) ? T(0) : quotient(x, y == T(0) ? T(1) : y);              \
  }                                                                           \
  T FloorDivide(T x, T y) { return Divide(x, y); }                            \
  T Remainder(T x, T y) { return T(x - T(Divide(x, y) * y)); }
#define BINARY_OPS_INTEGER(T)                                                 \
  T Add(T x, T y) { return T(x + y); }                                        \
  T Subtract(T x, T y) { return T(x - y); }                                   \
  T Multiply(T x, T y) { return T(x * y); }                                   \
  T Maximum(T x, T y) { return is_less(y, x) ? x : y; }                       \
  T Minimum(T x, T y) { return is_less(x, y) ? x : y; }                       \
  T BitwiseAnd(T x, T y) { return T(x & y); }                                 \
  T BitwiseOr(T x, T y) { return T(x | y); }                                  \
  T BitwiseXor(T x, T y) { return T(x ^ y); }                                 \
  T Power(T base, T exponent) {                                               \
    T r = T(1);                                                               \
    if (is_less(exponent, T(0))) {                                            \
      return T(0);                                                            \
    }                                                                         \
    for (int bit = 0; bit < 64 && exponent != T(0); ++bit) {                  \
      r = (exponent & T(1)) != T(0) ? T(r * base) : r;                        \
      exponent = T(exponent >> 1);                                            \
      base = T(base * base);                                                  \
    }                                                                         \
    return r;                                                                 \
  }
FOR_SIGNED(BINARY_OPS_SIGNED)
FOR_UNSIGNED(BINARY_OPS_UNSIGNED)
FOR_INTEGERS(BINARY_OPS_INTEGER)

// C promotes narrow integers to int before a shift.
#define BINARY_SHIFTS(T, WIDE)                                                \
  T LeftShift(T x, T y) { return T(WIDE(x) << WIDE(y)); }                     \
  T RightShift(T x, T y) { return T(WIDE(x) >> WIDE(y)); }
BINARY_SHIFTS(int8_t, int)
BINARY_SHIFTS(int16_t, int)
BINARY_SHIFTS(int32_t, int)
BINARY_SHIFTS(int64_t, int64_t)
BINARY_SHIFTS(uint8_t, uint)
BINARY_SHIFTS(uint16_t, uint)
BINARY_SHIFTS(uint32_t, uint)
BINARY_SHIFTS(uint64_t, uint64_t)

// ---- float -----------------------------------------------------------------

// NaN if either operand is NaN, tested by bits because max and min may drop it.
#define BINARY_REAL(T)                                                        \
  BINARY_(T, Add, x + y)                                                      \
  BINARY_(T, Subtract, x - y)                                                 \
  BINARY_(T, Multiply, x * y)                                                 \
  BINARY_(T, Divide, math_divide(x, y))                                       \
  BINARY_(T, FloorDivide, math_floor_divide(x, y))                            \
  BINARY_(T, Remainder, math_remainder(x, y))                                 \
  BINARY_(T, Power, math_pow(x, y))                                           \
  T ArcTan2(T y, T x) { return math_atan2(y, x); }                            \
  BINARY_(T, Maximum, is_nan(x) ? x : is_nan(y) ? y : (x > y ? x : y))        \
  BINARY_(T, Minimum, is_nan(x) ? x : is_nan(y) ? y : (x >= y ? y : x))
BINARY_REAL(float)
FOR_DOUBLE(BINARY_REAL)
float LogAddExp(float x, float y) {
  float high = Maximum(x, y);
  float low = Minimum(x, y);
  bool plain = is_nan(high) || floatBitsToUint(low) == 0xff800000u ||
      floatBitsToUint(high) == 0x7f800000u;
  precise float r = high + math_log1p(math_exp(low - high));
  return plain ? high : r;
}

#if FLOAT64
double LogAddExp(double x, double y) {
  double high = Maximum(x, y);
  double low = Minimum(x, y);
  precise double r = high + math_log1p(math_exp(low - high));
  return is_nan(high) || is_inf(low) || is_inf(high) ? high : r;
}
#endif

// ---- complex ---------------------------------------------------------------

BINARY_(vec2, Add, x + y)
BINARY_(vec2, Subtract, x - y)
BINARY_(vec2, Multiply, c_mul(x, y))
BINARY_(vec2, Divide, c_div(x, y))
BINARY_(vec2, FloorDivide, c_div(x, y))
BINARY_(
    vec2, Remainder, vec2(math_remainder(x.x, y.x), math_remainder(x.y, y.y)))
BINARY_(vec2, Power, c_pow(x, y))
BINARY_(vec2, Maximum, (is_nan(x) || c_less(y, x)) ? x : y)
BINARY_(vec2, Minimum, (is_nan(x) || c_less(x, y)) ? x : y)
vec2 LogAddExp(vec2 x, vec2 y) {
  if (is_nan(x) || is_nan(y)) {
    return vec2(NAN_F);
  }
  vec2 high = c_less(y, x) ? x : y;
  vec2 low = c_less(y, x) ? y : x;
  if (floatBitsToUint(low.x) == 0xff800000u ||
      floatBitsToUint(high.x) == 0x7f800000u) {
    return high;
  }
  return high + c_log1p(c_exp(low - high));
}

// ---- comparisons and bool --------------------------------------------------

#define BINARY_COMPARE(T, NOT_LESS)                                           \
  bool Equal(T x, T y) { return x == y; }                                     \
  bool NotEqual(T x, T y) { return !(x == y); }                               \
  bool Greater(T x, T y) { return is_less(y, x); }                            \
  bool GreaterEqual(T x, T y) { return NOT_LESS(x, y); }                      \
  bool Less(T x, T y) { return is_less(x, y); }                               \
  bool LessEqual(T x, T y) { return NOT_LESS(y, x); }                         \
  bool LogicalAnd(T x, T y) { return !(x == T(0)) && !(y == T(0)); }          \
  bool LogicalOr(T x, T y) { return !(x == T(0)) || !(y == T(0)); }
#define NOT_LESS_(x, y) (!is_less(x, y))
#define AT_LEAST_(x, y) ((x) >= (y))
#define COMPARE_INTEGERS(T) BINARY_COMPARE(T, NOT_LESS_)
FOR_INTEGERS(COMPARE_INTEGERS)
#define COMPARE_REAL(T)                                                       \
  BINARY_COMPARE(T, AT_LEAST_)                                                \
  COMPARE_(T, NaNEqual, x == y || (is_nan(x) && is_nan(y)))
COMPARE_REAL(float)
FOR_DOUBLE(COMPARE_REAL)

COMPARE_(vec2, Equal, c_equal(x, y))
COMPARE_(vec2, NotEqual, !c_equal(x, y))
COMPARE_(vec2, Greater, c_less(y, x))
COMPARE_(vec2, GreaterEqual, c_less(y, x) || c_equal(x, y))
COMPARE_(vec2, Less, c_less(x, y))
COMPARE_(vec2, LessEqual, c_less(x, y) || c_equal(x, y))
COMPARE_(vec2, LogicalAnd, !c_equal(x, vec2(0.0)) && !c_equal(y, vec2(0.0)))
COMPARE_(vec2, LogicalOr, !c_equal(x, vec2(0.0)) || !c_equal(y, vec2(0.0)))
COMPARE_(vec2, NaNEqual, NaNEqual(x.x, y.x) && NaNEqual(x.y, y.y))

// bool arithmetic saturates: C's int arithmetic, converted back.
BINARY_(bool, Add, x || y)
BINARY_(bool, Subtract, x != y)
BINARY_(bool, Multiply, x && y)
BINARY_(bool, Divide, x && y)
BINARY_(bool, FloorDivide, x && y)
BINARY_(bool, Remainder, x && !y)
BINARY_(bool, Power, x || !y)
BINARY_(bool, Maximum, x || y)
BINARY_(bool, Minimum, x && y)
BINARY_(bool, BitwiseAnd, x && y)
BINARY_(bool, BitwiseOr, x || y)
BINARY_(bool, BitwiseXor, x != y)
BINARY_(bool, LeftShift, x)
BINARY_(bool, RightShift, x && !y)
BINARY_(bool, LogicalAnd, x && y)
BINARY_(bool, LogicalOr, x || y)
BINARY_(bool, Equal, x == y)
BINARY_(bool, NotEqual, x != y)
BINARY_(bool, Greater, x && !y)
BINARY_(bool, GreaterEqual, x || !y)
BINARY_(bool, Less, !x && y)
BINARY_(bool, LessEqual, !x || y)
