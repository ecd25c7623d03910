// Reduction operators over the value type Acc (f32, i32, u32, i64, u64, c64;
// narrower types are reduced in 32 bits). The host defines OP as one of the
// names below; a kernel's own operators have higher numbers.
#pragma once

#include "common/math.glsl"
#include "common/order.glsl"
#include "common/types.glsl"

#define Sum 0
#define Prod 1
#define Min 2
#define Max 3
#define And 4
#define Or 5
#define LogSum 6

float log_add_exp(float a, float b) {
  float hi = a > b ? a : b;
  float lo = a > b ? b : a;
  float y = hi + math_log1p(math_exp(lo - hi));
  y = lo == -INF_F || hi == INF_F ? hi : y;
  return is_nan(a) || is_nan(b) ? NAN_F : y;
}
#if FLOAT64
double log_add_exp(double a, double b) {
  double hi = a > b ? a : b;
  double lo = a > b ? b : a;
  double y = hi + math_log1p(math_exp(lo - hi));
  y = lo == -INF_D || hi == INF_D ? hi : y;
  return is_nan(a) || is_nan(b) ? NAN_D : y;
}
#endif
vec2 log_add_exp(vec2 a, vec2 b) {
  vec2 hi = less(a, b) ? b : a;
  vec2 lo = less(a, b) ? a : b;
  vec2 d = lo - hi;
  float e = math_exp(d.x);
  vec2 t = vec2(e * math_cos(d.y), e * math_sin(d.y));
  // log(1 + t), its real part from |1 + t|^2 - 1.
  float r = t.x * (2.0 + t.x) + t.y * t.y;
  vec2 y = hi + vec2(0.5 * math_log1p(r), math_atan2(t.y, 1.0 + t.x));
  bool edge = lo.x == -INF_F || hi.x == INF_F;
  return is_nan(a) || is_nan(b) ? vec2(NAN_F) : edge ? hi : y;
}

#if OP <= LogSum
// reduce_op(a, b) propagates NaN.
Acc reduce_op(Acc a, Acc b) {
#if OP == Sum
  return a + b;
#elif OP == Prod && Acc_KIND == KIND_COMPLEX
  return c_mul(a, b);
#elif OP == Prod
  return a * b;
#elif OP == Min
  return is_nan(a) || less(a, b) ? a : b;
#elif OP == Max
  return is_nan(a) || less(b, a) ? a : b;
#elif OP == And
  return a & b;
#elif OP == Or
  return a | b;
#elif OP == LogSum
  return log_add_exp(a, b);
#endif
}

// The neutral element; for integers the limit of the stored type.
#ifdef Acc_IS_f64
#define LOWEST (-INF_D)
#define HIGHEST INF_D
#elif Acc_KIND == KIND_FLOAT
#define LOWEST (-INF_F)
#define HIGHEST INF_F
#elif Acc_KIND == KIND_COMPLEX
#define LOWEST vec2(-INF_F)
#define HIGHEST vec2(INF_F)
#elif Acc_KIND == KIND_UINT
#define LOWEST Acc(0)
#ifdef U_IS_bool
#define HIGHEST Acc(1)
#else
#define HIGHEST (~Acc(0) >> ((Acc_SIZE - U_SIZE) * 8))
#endif
#else
#define HIGHEST                                                               \
  (((Acc(1) << (U_SIZE * 8 - 2)) - Acc(1)) * Acc(2) + Acc(1))
#define LOWEST (-HIGHEST - Acc(1))
#endif

Acc neutral() {
#if OP == Sum && Acc_KIND == KIND_COMPLEX
  return vec2(0.0);
#elif OP == Prod && Acc_KIND == KIND_COMPLEX
  return vec2(1.0, 0.0);
#elif OP == Sum || OP == Or
  return Acc(0);
#elif OP == Prod || OP == And
  return Acc(1);
#elif OP == Min
  return HIGHEST;
#else
  return LOWEST;
#endif
}
#endif

// Converts a loaded value to an operand: truth value for And and Or (-0.0 is
// false).
#if OP == And || OP == Or
#define LIFT(x) (to_bool(x) ? 1u : 0u)
#else
#define LIFT(x) Acc_CAST(x)
#endif
