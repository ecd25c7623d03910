// Binary primitives, named like MLX's primitives and overloaded by value type;
// used by binary.comp and the generated kernels of src/jit.
#ifndef BINARY_OPS_GLSL
#define BINARY_OPS_GLSL

#include "common/power.glsl"
#include "common/unary_ops.glsl"

// ---- integers --------------------------------------------------------------

// Division by zero gives 0 and its remainder is x, as on MLX's CPU. The
// quotient by -1 is written out, because INT_MIN / -1 traps on some processors.
#define BINARY_OPS_SIGNED(T)                                                  \
  T Divide(T x, T y) {                                                        \
    T d = (y == T(0) || y == T(-1)) ? T(1) : y;                               \
    T q = T(x / d);                                                           \
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
    return y == T(0) ? T(0) : T(x / (y == T(0) ? T(1) : y));                  \
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

float Add(float x, float y) {
  return x + y;
}
float Subtract(float x, float y) {
  return x - y;
}
float Multiply(float x, float y) {
  return x * y;
}
float Divide(float x, float y) {
  return math_divide(x, y);
}
float FloorDivide(float x, float y) {
  return math_floor_divide(x, y);
}
float Remainder(float x, float y) {
  return math_remainder(x, y);
}
float Power(float x, float y) {
  return math_pow(x, y);
}
float ArcTan2(float y, float x) {
  return math_atan2(y, x);
}
// NaN if either operand is NaN, tested by bits because max and min may drop it.
float Maximum(float x, float y) {
  return is_nan(x) ? x : is_nan(y) ? y : (x > y ? x : y);
}
float Minimum(float x, float y) {
  return is_nan(x) ? x : is_nan(y) ? y : (x < y ? x : y);
}
float LogAddExp(float x, float y) {
  float high = Maximum(x, y);
  float low = Minimum(x, y);
  bool plain = is_nan(high) || floatBitsToUint(low) == 0xff800000u ||
      floatBitsToUint(high) == 0x7f800000u;
  precise float r = high + math_log1p(math_exp(low - high));
  return plain ? high : r;
}

// ---- complex ---------------------------------------------------------------

vec2 Add(vec2 x, vec2 y) {
  return x + y;
}
vec2 Subtract(vec2 x, vec2 y) {
  return x - y;
}
vec2 Multiply(vec2 x, vec2 y) {
  return c_mul(x, y);
}
vec2 Divide(vec2 x, vec2 y) {
  return c_div(x, y);
}
vec2 FloorDivide(vec2 x, vec2 y) {
  return c_div(x, y);
}
vec2 Remainder(vec2 x, vec2 y) {
  return vec2(math_remainder(x.x, y.x), math_remainder(x.y, y.y));
}
vec2 Power(vec2 x, vec2 y) {
  return c_pow(x, y);
}
vec2 Maximum(vec2 x, vec2 y) {
  return (is_nan(x) || c_less(y, x)) ? x : y;
}
vec2 Minimum(vec2 x, vec2 y) {
  return (is_nan(x) || c_less(x, y)) ? x : y;
}
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
BINARY_COMPARE(float, AT_LEAST_)

bool NaNEqual(float x, float y) {
  return x == y || (is_nan(x) && is_nan(y));
}

bool Equal(vec2 x, vec2 y) {
  return c_equal(x, y);
}
bool NotEqual(vec2 x, vec2 y) {
  return !c_equal(x, y);
}
bool Greater(vec2 x, vec2 y) {
  return c_less(y, x);
}
bool GreaterEqual(vec2 x, vec2 y) {
  return c_less(y, x) || c_equal(x, y);
}
bool Less(vec2 x, vec2 y) {
  return c_less(x, y);
}
bool LessEqual(vec2 x, vec2 y) {
  return c_less(x, y) || c_equal(x, y);
}
bool LogicalAnd(vec2 x, vec2 y) {
  return !c_equal(x, vec2(0.0)) && !c_equal(y, vec2(0.0));
}
bool LogicalOr(vec2 x, vec2 y) {
  return !c_equal(x, vec2(0.0)) || !c_equal(y, vec2(0.0));
}
bool NaNEqual(vec2 x, vec2 y) {
  return NaNEqual(x.x, y.x) && NaNEqual(x.y, y.y);
}

// bool arithmetic saturates: C's int arithmetic, converted back.
bool Add(bool x, bool y) {
  return x || y;
}
bool Subtract(bool x, bool y) {
  return x != y;
}
bool Multiply(bool x, bool y) {
  return x && y;
}
bool Divide(bool x, bool y) {
  return x && y;
}
bool FloorDivide(bool x, bool y) {
  return x && y;
}
bool Remainder(bool x, bool y) {
  return x && !y;
}
bool Power(bool x, bool y) {
  return x || !y;
}
bool Maximum(bool x, bool y) {
  return x || y;
}
bool Minimum(bool x, bool y) {
  return x && y;
}
bool BitwiseAnd(bool x, bool y) {
  return x && y;
}
bool BitwiseOr(bool x, bool y) {
  return x || y;
}
bool BitwiseXor(bool x, bool y) {
  return x != y;
}
bool LeftShift(bool x, bool y) {
  return x;
}
bool RightShift(bool x, bool y) {
  return x && !y;
}
bool LogicalAnd(bool x, bool y) {
  return x && y;
}
bool LogicalOr(bool x, bool y) {
  return x || y;
}
bool Equal(bool x, bool y) {
  return x == y;
}
bool NotEqual(bool x, bool y) {
  return x != y;
}
bool Greater(bool x, bool y) {
  return x && !y;
}
bool GreaterEqual(bool x, bool y) {
  return x || !y;
}
bool Less(bool x, bool y) {
  return !x && y;
}
bool LessEqual(bool x, bool y) {
  return !x || y;
}

#endif
