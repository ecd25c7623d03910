// Unary primitives, named like MLX's primitives and overloaded by value type;
// used by unary.comp and the generated kernels of src/jit.
#pragma once

#include "common/complex.glsl"

#define FOR_SIGNED(M) M(int8_t) M(int16_t) M(int32_t) M(int64_t)
#define FOR_UNSIGNED(M) M(uint8_t) M(uint16_t) M(uint32_t) M(uint64_t)
#define FOR_INTEGERS(M) FOR_SIGNED(M) FOR_UNSIGNED(M)

// The 64-bit overloads are in numeric.glsl.
#define IS_LESS_(T)                                                           \
  bool is_less(T x, T y) { return x < y; }
IS_LESS_(int8_t)
IS_LESS_(int16_t)
IS_LESS_(int32_t)
IS_LESS_(uint8_t)
IS_LESS_(uint16_t)
IS_LESS_(uint32_t)
IS_LESS_(float)
FOR_DOUBLE(IS_LESS_)

#define UNARY_(T, NAME, RESULT)                                               \
  T NAME(T x) { return RESULT; }
#if FLOAT64
#define UNARY_DOUBLE(NAME, RESULT) UNARY_(double, NAME, RESULT)
#else
#define UNARY_DOUBLE(NAME, RESULT)
#endif
#define UNARY_REAL(NAME, RESULT)                                              \
  UNARY_(float, NAME, RESULT)                                                 \
  UNARY_DOUBLE(NAME, RESULT)
#define UNARY_FLOAT(NAME, F) UNARY_REAL(NAME, F(x))
#define UNARY_INEXACT(NAME, F, C)                                             \
  UNARY_REAL(NAME, F(x))                                                      \
  UNARY_(vec2, NAME, C(x))

UNARY_INEXACT(ArcCos, math_acos, c_acos)
UNARY_INEXACT(ArcCosh, math_acosh, c_acosh)
UNARY_INEXACT(ArcSin, math_asin, c_asin)
UNARY_INEXACT(ArcSinh, math_asinh, c_asinh)
UNARY_INEXACT(ArcTan, math_atan, c_atan)
UNARY_INEXACT(ArcTanh, math_atanh, c_atanh)
UNARY_INEXACT(Cos, math_cos, c_cos)
UNARY_INEXACT(Cosh, math_cosh, c_cosh)
UNARY_INEXACT(Exp, math_exp, c_exp)
UNARY_INEXACT(Expm1, math_expm1, c_expm1)
UNARY_INEXACT(Log, math_log, c_log)
UNARY_INEXACT(Log1p, math_log1p, c_log1p)
UNARY_INEXACT(Sin, math_sin, c_sin)
UNARY_INEXACT(Sinh, math_sinh, c_sinh)
UNARY_INEXACT(Sqrt, math_sqrt, c_sqrt)
UNARY_INEXACT(Tan, math_tan, c_tan)
UNARY_INEXACT(Tanh, math_tanh, c_tanh)
UNARY_FLOAT(Erf, math_erf)
UNARY_FLOAT(ErfInv, math_erfinv)
UNARY_FLOAT(Log2, math_log2)
UNARY_FLOAT(Log10, math_log10)
UNARY_FLOAT(Rsqrt, math_rsqrt)
UNARY_(vec2, Log2, c_log(x) / 0.693147182)
UNARY_(vec2, Log10, c_log(x) / 2.30258512)
UNARY_(vec2, Rsqrt, c_div(vec2(1.0, 0.0), c_sqrt(x)))

float Sigmoid(float x) {
  precise float y = 1.0 / (1.0 + math_exp(math_abs(x)));
  precise float z = 1.0 - y;
  return x < 0.0 ? y : z;
}
#if FLOAT64
double Sigmoid(double x) {
  precise double y = 1.0lf / (1.0lf + math_exp(abs(x)));
  precise double z = 1.0lf - y;
  return x < 0.0lf ? y : z;
}
#endif
UNARY_(vec2, Sigmoid, c_div(vec2(1.0, 0.0), vec2(1.0, 0.0) + c_exp(-x)))

UNARY_REAL(Abs, math_abs(x))
UNARY_(vec2, Abs, vec2(c_abs(x), 0.0))
UNARY_REAL(Negative, -x)
UNARY_(vec2, Negative, -x)
UNARY_REAL(Sign, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0)
vec2 Sign(vec2 x) {
  x *= c_largest(x) > C_LARGE ? 0.25 : 1.0;
  float r = c_abs(x);
  return (x.x == 0.0 && x.y == 0.0)
      ? x
      : vec2(math_divide(x.x, r), math_divide(x.y, r));
}
UNARY_REAL(Square, x * x)
UNARY_(vec2, Square, c_mul(x, x))
UNARY_(float, Ceil, ceil(x))
UNARY_REAL(Floor, floor(x))
UNARY_(float, Round, roundEven(x))
// llvmpipe loses the sign of zero.
UNARY_DOUBLE(Ceil, copy_sign(ceil(x), x))
UNARY_DOUBLE(Round, copy_sign(roundEven(x), x))
UNARY_(vec2, Ceil, ceil(x))
UNARY_(vec2, Floor, floor(x))
UNARY_(vec2, Round, roundEven(x))
UNARY_(vec2, Conjugate, vec2(x.x, -x.y))
float Real(vec2 x) {
  return x.x;
}
float Imag(vec2 x) {
  return x.y;
}

#define UNARY_OPS_SIGNED(T)                                                   \
  T Abs(T x) { return is_less(x, T(0)) ? T(-x) : x; }                         \
  T Sign(T x) {                                                               \
    return is_less(T(0), x) ? T(1) : is_less(x, T(0)) ? T(-1) : T(0);         \
  }
#define UNARY_OPS_UNSIGNED(T)                                                 \
  T Abs(T x) { return x; }                                                    \
  T Sign(T x) { return x == T(0) ? T(0) : T(1); }
#define UNARY_OPS_INTEGER(T)                                                  \
  T Negative(T x) { return T(T(0) - x); }                                     \
  T Square(T x) { return T(x * x); }                                          \
  T BitwiseInvert(T x) { return T(~x); }                                      \
  T Ceil(T x) { return x; }                                                   \
  T Floor(T x) { return x; }                                                  \
  T Round(T x) { return x; }                                                  \
  bool LogicalNot(T x) { return x == T(0); }
FOR_SIGNED(UNARY_OPS_SIGNED)
FOR_UNSIGNED(UNARY_OPS_UNSIGNED)
FOR_INTEGERS(UNARY_OPS_INTEGER)

UNARY_(bool, Abs, x)
UNARY_(bool, Sign, x)
UNARY_(bool, Square, x)
UNARY_(bool, Negative, x)
UNARY_(bool, BitwiseInvert, !x)
UNARY_(bool, Ceil, x)
UNARY_(bool, Floor, x)
UNARY_(bool, Round, x)
UNARY_(bool, LogicalNot, !x)
#define LOGICAL_NOT_(T)                                                       \
  bool LogicalNot(T x) { return is_zero(x); }
LOGICAL_NOT_(float)
FOR_DOUBLE(LOGICAL_NOT_)
bool LogicalNot(vec2 x) {
  return x.x == 0.0 && x.y == 0.0;
}
