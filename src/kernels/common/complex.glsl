// complex64 as vec2 (real, imaginary). Inverse functions follow Kahan (Branch
// Cuts for Complex Elementary Functions, 1987), who keeps accuracy near branch
// points and signed zeros on the cuts.
#pragma once

#include "common/math.glsl"

// Powers of two by which numbers near the ends of the range are multiplied, so
// that sums of their parts do not overflow and no part that matters becomes
// subnormal.
const float C_LARGE = 4.2535295865117308e37; // 2^125
float c_largest(vec2 z) {
  return max(math_abs(z.x), math_abs(z.y));
}
float c_smallest(vec2 z) {
  return min(math_abs(z.x), math_abs(z.y));
}

// Smith's method (1962), without overflow in the denominator. Quotients are
// rounded like real ones.
vec2 c_div(vec2 a, vec2 b) {
  // A sum of two parts overflows only if neither is small.
  float above = c_smallest(a) > 1.2676506002282294e30 ? 0.25 : 1.0; // 2^100
  float below = c_smallest(b) > 1.2676506002282294e30 ? 0.25 : 1.0;
  a *= above;
  b *= below;
  bool wide = math_abs(b.x) >= math_abs(b.y);
  vec2 d = wide ? b : b.yx;
  // The numerator is (p.x + p.y t, q.x - q.y t).
  vec2 p = wide ? a : a.yx;
  vec2 q = wide ? a.yx : -a;
  precise float t = math_divide(d.y, d.x);
  precise float scale = d.x + d.y * t;
  precise vec2 n = vec2(p.x + p.y * t, q.x - q.y * t);
  return vec2(math_divide(n.x, scale), math_divide(n.y, scale)) *
      (below / above);
}
float c_abs(vec2 z) {
  return math_hypot(z.x, z.y);
}
vec2 c_times_i(vec2 z) {
  return vec2(-z.y, z.x);
}
vec2 c_over_i(vec2 z) {
  return vec2(z.y, -z.x);
}

vec2 c_exp(vec2 z) {
  float e = math_exp(z.x);
  vec2 r = vec2(e * math_cos(z.y), e * math_sin(z.y));
  r = z.y == 0.0 ? vec2(e, z.y) : r;
  return e == 0.0 ? vec2(0.0) : r;
}
vec2 c_expm1(vec2 z) {
  float s = math_sin(0.5 * z.y);
  precise float re = math_expm1(z.x) * math_cos(z.y) - 2.0 * (s * s);
  float im = math_exp(z.x) * math_sin(z.y);
  return vec2(re, z.y == 0.0 ? z.y : im);
}

// log |z|, through log1p near |z| = 1.
float c_log_abs(vec2 z) {
  float a = c_largest(z);
  float b = c_smallest(z);
  if (a > C_LARGE && is_finite(a)) {
    return math_log(c_abs(0.25 * z)) + 1.3862943611198906;
  }
  float h = c_abs(z);
  if (h > 0.5 && h < 2.0) {
    precise float t = (a - 1.0) * (a + 1.0) + b * b;
    return 0.5 * math_log1p(t);
  }
  return math_log(h);
}
vec2 c_log(vec2 z) {
  return vec2(c_log_abs(z), math_atan2(z.y, z.x));
}
vec2 c_log1p(vec2 z) {
  float theta = math_atan2(z.y, z.x + 1.0);
  if (c_abs(z) < 0.5) {
    precise float t = z.x * (2.0 + z.x) + z.y * z.y;
    return vec2(t == 0.0 ? z.x : 0.5 * math_log1p(t), theta);
  }
  return vec2(c_log_abs(vec2(z.x + 1.0, z.y)), theta);
}

vec2 c_sqrt(vec2 z) {
  if (z.x == 0.0 && z.y == 0.0) {
    return vec2(0.0, z.y);
  }
  if (is_inf(z.y)) {
    return vec2(INF_F, z.y);
  }
  if (is_inf(z.x)) {
    float other = is_nan(z.y) ? z.y : 0.0;
    return z.x > 0.0 ? vec2(z.x, copy_sign(other, z.y))
                     : vec2(other, copy_sign(INF_F, z.y));
  }
  // sqrt(4^n z) / 2^n
  bool large = c_largest(z) > C_LARGE;
  bool small = c_largest(z) < 7.8886090522101181e-31; // 2^-100
  z *= large ? 0.0625 : small ? 1.2676506002282294e30 : 1.0;
  float back = large ? 4.0 : small ? 8.8817841970012523e-16 : 1.0; // 2^-50
  precise float t =
      math_sqrt(0.5 * math_abs(z.x) + 0.5 * math_hypot(z.x, z.y));
  precise float u = 0.5 * (math_abs(z.y) / t);
  vec2 r = z.x >= 0.0 ? vec2(t, copy_sign(u, z.y))
                      : vec2(u, copy_sign(t, z.y));
  return r * back;
}

vec2 c_sin(vec2 z) {
  return vec2(
      math_sin(z.x) * math_cosh(z.y), math_cos(z.x) * math_sinh(z.y));
}
vec2 c_cos(vec2 z) {
  return vec2(
      math_cos(z.x) * math_cosh(z.y), -math_sin(z.x) * math_sinh(z.y));
}
vec2 c_sinh(vec2 z) {
  return vec2(
      math_sinh(z.x) * math_cos(z.y), math_cosh(z.x) * math_sin(z.y));
}
vec2 c_cosh(vec2 z) {
  return vec2(
      math_cosh(z.x) * math_cos(z.y), math_sinh(z.x) * math_sin(z.y));
}
vec2 c_tanh(vec2 z) {
  if (math_abs(z.x) > 10.0) {
    float e = math_exp(-2.0 * math_abs(z.x));
    float im = 4.0 * math_sin(z.y) * math_cos(z.y) * e;
    return vec2(copy_sign(1.0, z.x), is_finite(z.y) ? im : 0.0);
  }
  float t = math_tan(z.y);
  float s = math_sinh(z.x);
  precise float beta = 1.0 + t * t;
  precise float rho = math_sqrt(1.0 + s * s);
  precise float d = 1.0 + beta * (s * s);
  return vec2(beta * rho * s / d, t / d);
}
vec2 c_tan(vec2 z) {
  return c_over_i(c_tanh(c_times_i(z)));
}

vec2 c_acos(vec2 z) {
  vec2 a = c_sqrt(vec2(1.0 - z.x, -z.y));
  vec2 b = c_sqrt(vec2(1.0 + z.x, z.y));
  precise float t = b.x * a.y - b.y * a.x;
  return vec2(2.0 * math_atan2(a.x, b.x), math_asinh(t));
}
vec2 c_asin(vec2 z) {
  vec2 a = c_sqrt(vec2(1.0 - z.x, -z.y));
  vec2 b = c_sqrt(vec2(1.0 + z.x, z.y));
  precise float re = a.x * b.x - a.y * b.y;
  precise float t = a.x * b.y - a.y * b.x;
  return vec2(math_atan2(z.x, re), math_asinh(t));
}
vec2 c_acosh(vec2 z) {
  vec2 a = c_sqrt(vec2(z.x - 1.0, z.y));
  vec2 b = c_sqrt(vec2(z.x + 1.0, z.y));
  precise float t = a.x * b.x + a.y * b.y;
  return vec2(math_asinh(t), 2.0 * math_atan2(a.y, b.x));
}
vec2 c_asinh(vec2 z) {
  return c_over_i(c_asin(c_times_i(z)));
}
vec2 c_atanh(vec2 z) {
  float a = math_abs(z.x);
  if (c_largest(z) > 1.1258999068426240e15 && is_finite(c_largest(z))) {
    // 2^50: 1 / z for the real part, whose terms below would overflow.
    return vec2(
        c_div(vec2(1.0, 0.0), z).x, copy_sign(1.57079632679489662, z.y));
  }
  precise float d = (1.0 - a) * (1.0 - a) + z.y * z.y;
  precise float e = (1.0 - a) * (1.0 + a) - z.y * z.y;
  return vec2(
      copy_sign(0.25 * math_log1p((4.0 * a) / d), z.x),
      0.5 * math_atan2(2.0 * z.y, e));
}
vec2 c_atan(vec2 z) {
  return c_over_i(c_atanh(c_times_i(z)));
}

vec2 c_pow(vec2 x, vec2 y) {
  if (x.x == 0.0 && x.y == 0.0) {
    return is_nan(y) ? vec2(NAN_F) : vec2(0.0);
  }
  return c_exp(c_mul(y, c_log(x)));
}

bool c_equal(vec2 a, vec2 b) {
  return a.x == b.x && a.y == b.y;
}
