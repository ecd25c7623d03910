// Accurate float functions. Vulkan allows errors of many ulp in exp, log and
// sin and leaves NaN, Inf and large arguments undefined; these functions do not
// depend on the driver's.
//
// They need neither a fused fma() nor subnormals: products that must be exact
// have short mantissas (Cody-Waite constants, 12-bit splits). `precise` forbids
// reassociation. Errors are at most 2 ulp unless stated otherwise
// (tests/backend/test_math.py compares with float64). Polynomials are fitted by
// tools/fit_math.py; "fit: name" names the fit.
#pragma once

#include "common/numeric.glsl"
#if FLOAT64
#include "common/math64.glsl"
#endif

float math_abs(float x) {
  return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu);
}
// Selects instead of mixing bits, because Mesa 26.1 turns the mix into x & ~y
// in places.
float copy_sign(float magnitude, float sign) {
  uint bits = floatBitsToUint(magnitude) & 0x7fffffffu;
  return uintBitsToFloat(sign_bit(sign) ? bits | 0x80000000u : bits);
}

// 2^n for n in [-126, 127].
float pow2i(int n) {
  return intBitsToFloat((n + 127) << 23);
}
// x * 2^n for n in [-252, 254], rounded once.
float scale_pow2(float x, int n) {
  int h = n >> 1;
  precise float y = x * pow2i(h);
  precise float z = y * pow2i(n - h);
  return z;
}
// Upper 12 bits of the mantissa; products of two such floats are exact.
float upper12(float x) {
  return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
}

// x / y rounded as in IEEE 754, except for subnormal quotients. The driver's
// quotient may be off by 2.5 ulp, and by any amount where y > 2^126. It is
// corrected once by an exact residual from 12-bit halves.
float math_divide(float x, float y) {
  float ax = math_abs(x);
  float ay = math_abs(y);
  float k = ay > 4.2535295865117308e37          ? 0.25
      : (ax < 2147483648.0 && ay < 1.0) ? 7.9228162514264338e28 // 2^96
                                        : 1.0;
  precise float a = x * k;
  precise float b = y * k;
  precise float q = a / b;
  precise float p = q * b;
  precise float qh = upper12(q);
  precise float ql = q - qh;
  precise float bh = upper12(b);
  precise float bl = b - bh;
  precise float lost = ((qh * bh - p) + qh * bl + ql * bh) + ql * bl;
  precise float residual = (a - p) - lost;
  precise float better = q + residual / b;
  // Elsewhere the residual is inexact or NaN.
  bool regular = is_finite(q) && math_abs(q) > 1.17549435e-38 &&
      math_abs(a) > 8.0779356694631609e-28;
  return regular ? better : q;
}

// ---- exponentials ----------------------------------------------------------

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2; fit: exp.
float exp_tail(float r) {
  float p = 1.97892892e-4;
  p = p * r + 1.39457511e-3;
  p = p * r + 8.33350327e-3;
  p = p * r + 4.16662805e-2;
  p = p * r + 0.166666657;
  return p * r + 0.5;
}

// e^x 2^n for x in [-104, 89] and n in [-2, 2].
float exp_scaled(float x, int n) {
  // ln(2) = 0.693145751953125 (15 bits) + 1.42860682e-6.
  precise float k = floor(x * 1.44269504 + 0.5);
  precise float r0 = x - k * 0.693145751953125;
  precise float r = r0 - k * 1.42860682e-6;
  precise float y = 1.0 + (r + (r * r) * exp_tail(r));
  return scale_pow2(y, int(k) + n);
}

float math_exp(float x) {
  float y = exp_scaled(min(max(x, -104.0), 89.0), 0);
  return is_nan(x) ? x : y;
}

float math_exp2(float x) {
  float c = min(max(x, -150.0), 129.0);
  precise float k = floor(c + 0.5);
  precise float r = c - k;
  // (2^r - 1) / r; fit: exp2.
  precise float p = 1.46979928e-5;
  p = p * r + 1.54535242e-4;
  p = p * r + 1.33365986e-3;
  p = p * r + 9.61808488e-3;
  p = p * r + 5.55040613e-2;
  p = p * r + 0.240226507;
  p = p * r + 0.693147182;
  precise float y = 1.0 + p * r;
  y = scale_pow2(y, int(k));
  return is_nan(x) ? x : y;
}

float math_expm1(float x) {
  float c = min(max(x, -20.0), 89.0);
  precise float k = floor(c * 1.44269504 + 0.5);
  precise float r0 = c - k * 0.693145751953125;
  precise float low = k * 1.42860682e-6;
  precise float r = r0 - low;
  // e^r - 1; fit: expm1. The rounding of r matters when k != 0.
  precise float p = 2.46894833e-5;
  p = p * r + 1.99610193e-4;
  p = p * r + 1.3888852e-3;
  p = p * r + 8.33318755e-3;
  p = p * r + 4.16666679e-2;
  p = p * r + 0.166666672;
  p = p * r + 0.5;
  precise float rest = (r * r) * p + ((r0 - r) - low);
  p = r + rest;
  // 2^k (p + 1) - 1, halved so that k = 128 is in range.
  float h = pow2i(int(k) - 1);
  precise float y = 2.0 * (h * p + (h - 0.5));
  y = (k == 0.0) ? p : y;
  return (is_nan(x) || is_zero(x)) ? x : y;
}

// ---- logarithms ------------------------------------------------------------

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite x.
struct LogParts {
  float m;
  int e;
};
LogParts log_parts(float x) {
  uint u = floatBitsToUint(x);
  int shift = 0;
  if (u < 0x00800000u) { // subnormal: its bits as an integer times 2^-149
    u = floatBitsToUint(float(u));
    shift = -149;
  }
  u -= 0x3f3504f3u; // bits of sqrt(1/2)
  LogParts p;
  p.e = (int(u) >> 23) + shift;
  p.m = uintBitsToFloat((u & 0x7fffffu) + 0x3f3504f3u);
  return p;
}

// log(1 + f) - f for f in [-0.293, 0.415]; fit: log.
float log_tail(float f) {
  precise float p = 6.80043697e-2;
  p = p * f - 0.117504373;
  p = p * f + 0.119001105;
  p = p * f - 0.123939022;
  p = p * f + 0.142166838;
  p = p * f - 0.166685134;
  p = p * f + 0.200022712;
  p = p * f - 0.25000003;
  p = p * f + 0.333333105;
  precise float z = f * f;
  precise float y = z * (f * p) - 0.5 * z;
  return y;
}

// log, log2 and log10 outside (0, inf).
float log_special(float x) {
  float y = is_nan(x) ? x : NAN_F;
  y = is_zero(x) ? -INF_F : y;
  return (floatBitsToUint(x) == 0x7f800000u) ? x : y;
}
bool log_regular(float x) {
  uint u = floatBitsToUint(x);
  return u - 1u < 0x7f7fffffu;
}

float math_log(float x) {
  LogParts p = log_parts(x);
  precise float f = p.m - 1.0;
  float e = float(p.e);
  precise float y =
      e * 0.693145751953125 + (f + (log_tail(f) + e * 1.42860682e-6));
  return log_regular(x) ? y : log_special(x);
}

float math_log2(float x) {
  LogParts p = log_parts(x);
  precise float f = p.m - 1.0;
  // log2(e) = 1 + 0.442695041: f itself stays exact.
  precise float y =
      float(p.e) + (f + (log_tail(f) * 1.44269504 + f * 0.442695041));
  return log_regular(x) ? y : log_special(x);
}

float math_log10(float x) {
  LogParts p = log_parts(x);
  precise float f = p.m - 1.0;
  float e = float(p.e);
  // log10(e) = 1/2 - 0.0657055181 and log10(2) = 0.301025390625 (11 bits) +
  // 4.60503898e-6.
  precise float low = log_tail(f) * 0.434294482 - f * 0.0657055181;
  precise float y = e * 0.301025390625 + (0.5 * f + (low + e * 4.60503898e-6));
  return log_regular(x) ? y : log_special(x);
}

float math_log1p(float x) {
  precise float u = 1.0 + x;
  bool small = x > -0.29 && x < 0.41;
  LogParts p = log_parts(u);
  // Rounding error of 1 + x, relative to u.
  precise float lost = (x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x)) / u;
  precise float g = p.m - 1.0;
  float f = small ? x : g;
  float e = small ? 0.0 : float(p.e);
  float c = small ? 0.0 : lost;
  precise float y = e * 0.693145751953125 +
      (f + (log_tail(f) + (c + e * 1.42860682e-6)));
  y = is_zero(x) ? x : y;
  return log_regular(u) ? y : log_special(is_nan(x) ? x : u);
}

// ---- circular functions ----------------------------------------------------

// x - q pi/2 = r + tail with |r| <= pi/4 (slightly more near the ends); q is
// needed modulo 4.
struct CircleParts {
  float r;
  float tail;
  int q;
};

// Words of 2/pi = 0.a2f9836e..., preceded by a zero word.
uint two_over_pi(uint i) {
  return i == 0u ? 0u
      : i == 1u  ? 0xa2f9836eu
      : i == 2u  ? 0x4e441529u
      : i == 3u  ? 0xfc2757d1u
      : i == 4u  ? 0xf534ddc0u
      : i == 5u  ? 0xdb629599u
      : i == 6u  ? 0x3c439041u
      : i == 7u  ? 0xfe5163abu
                 : 0xdebbc561u;
}

// Payne-Hanek reduction for |x| >= 2: skips bits of 2/pi that contribute only
// multiples of 4 to x 2/pi, and multiplies the next 96 exactly by the mantissa.
CircleParts reduce_large(float x) {
  uint u = floatBitsToUint(x) & 0x7fffffffu;
  uint m = (u & 0x7fffffu) | 0x800000u;
  uint start = (u >> 23) - 127u + 7u; // first bit used, zeros included
  uint word = start >> 5;
  uint s = start & 31u;
  uint b0 = two_over_pi(word);
  uint b1 = two_over_pi(word + 1u);
  uint b2 = two_over_pi(word + 2u);
  uint b3 = two_over_pi(word + 3u);
  uint w0 = s == 0u ? b0 : (b0 << s) | (b1 >> (32u - s));
  uint w1 = s == 0u ? b1 : (b1 << s) | (b2 >> (32u - s));
  uint w2 = s == 0u ? b2 : (b2 << s) | (b3 >> (32u - s));
  uint64_t low = uint64_t(m) * uint64_t(w2);
  uint64_t mid = uint64_t(m) * uint64_t(w1) + (low >> 32);
  uint high = m * w0 + uint(mid >> 32);
  // high.mid.low is x 2/pi modulo 4 in units of 2^-94.
  int q = int(high >> 30);
  uint64_t fraction = (uint64_t(high) << 34) |
      ((mid & uint64_t(0xffffffffu)) << 2) | ((low >> 30) & uint64_t(3u));
  bool half_or_more = (fraction >> 63) != uint64_t(0u);
  q += half_or_more ? 1 : 0;
  // A signed value of 24 + 24 + 16 bits, each of which converts exactly.
  int a = int(uint(fraction >> 40) << 8) >> 8;
  int b = int(uint(fraction >> 16) & 0xffffffu);
  int c = int(uint(fraction) & 0xffffu);
  precise float v0 = float(a) * 5.9604644775390625e-8;
  precise float v1 = float(b) * 3.5527136788005009e-15;
  precise float v2 = float(c) * 5.4210108624275222e-20;
  precise float v = v0 + v1;
  precise float rest = ((v0 - v) + v1) + v2;
  CircleParts p;
  precise float r = v * 1.57079637;
  // Rounding error of the product, from 12-bit halves.
  precise float vh = upper12(v);
  precise float vl = v - vh;
  precise float lost = ((vh * 1.5703125 - r) + vl * 1.5703125 +
                        vh * 4.8387050628662109e-4) +
      vl * 4.8387050628662109e-4;
  precise float t = (lost + v * -4.371139e-8) + rest * 1.57079637;
  bool negative = sign_bit(x);
  p.r = negative ? -r : r;
  p.tail = negative ? -t : t;
  p.q = negative ? -q : q;
  return p;
}

// Cody-Waite reduction: pi/2 = P1 + P2 + P3 + P4 with 12, 13 and 9 bits before
// the last, so that k P1, k P2, k P3 and the first two differences are exact
// for k < 2^11.
CircleParts reduce_circle(float x) {
  if (math_abs(x) >= 3200.0) {
    return reduce_large(x);
  }
  precise float k = floor(x * 0.636619772 + 0.5);
  precise float t = (x - k * 1.5703125) - k * 4.8381090164184570e-4;
  precise float b = k * 1.58906914294e-8;
  precise float r = t - b;
  precise float tail = ((t - r) - b) - k * 2.56334415e-12;
  CircleParts p;
  p.r = r;
  p.tail = tail;
  p.q = int(k);
  return p;
}

// Fits: sin, cos, for |r| <= pi/4.
float sin_kernel(float r, float tail) {
  precise float z = r * r;
  precise float p = 2.83114628e-6;
  p = p * z - 1.98530033e-4;
  p = p * z + 8.3333794e-3;
  p = p * z - 0.166666672;
  precise float y = r + ((r * z) * p + tail * (1.0 - 0.5 * z));
  return y;
}
float cos_kernel(float r, float tail) {
  precise float z = r * r;
  precise float p = -2.8858463e-7;
  p = p * z + 2.48219076e-5;
  p = p * z - 1.388898e-3;
  p = p * z + 4.16666679e-2;
  precise float h = 0.5 * z;
  precise float w = 1.0 - h;
  precise float y = w + (((1.0 - w) - h) + ((z * z) * p - r * tail));
  return y;
}

float math_sin(float x) {
  CircleParts p = reduce_circle(x);
  float y = (p.q & 1) != 0 ? cos_kernel(p.r, p.tail) : sin_kernel(p.r, p.tail);
  y = (p.q & 2) != 0 ? -y : y;
  y = is_zero(x) ? x : y;
  return is_finite(x) ? y : NAN_F;
}
float math_cos(float x) {
  CircleParts p = reduce_circle(x);
  float y = (p.q & 1) != 0 ? sin_kernel(p.r, p.tail) : cos_kernel(p.r, p.tail);
  y = ((p.q + 1) & 2) != 0 ? -y : y;
  return is_finite(x) ? y : NAN_F;
}
float math_tan(float x) {
  CircleParts p = reduce_circle(x);
  float s = sin_kernel(p.r, p.tail);
  float c = cos_kernel(p.r, p.tail);
  float y = (p.q & 1) != 0 ? -c / s : s / c;
  y = is_zero(x) ? x : y;
  return is_finite(x) ? y : NAN_F;
}

// ---- square roots ----------------------------------------------------------

// x = v 2^(2n) with v large enough for exact residuals. Subnormals are scaled
// by their bits, since a driver may flush them to zero.
struct Scaled {
  float v;
  int n;
};
Scaled scaled_up(float x) {
  uint u = floatBitsToUint(x);
  if (u < 0x00800000u) {
    return Scaled(2.0 * float(u), -75);
  }
  bool tiny = x < 7.8886090522101181e-31; // 2^-100
  return tiny ? Scaled(x * 1.2676506002282294e30, -50) : Scaled(x, 0);
}

// One Newton step on an exact residual: correctly rounded except in rare ties.
float math_sqrt(float x) {
  Scaled f = scaled_up(x);
  float v = f.v;
  precise float s = sqrt(v);
  precise float h = upper12(s);
  precise float l = s - h;
  precise float residual = ((v - h * h) - 2.0 * (h * l)) - l * l;
  precise float y = (s + residual / (2.0 * s)) * pow2i(f.n);
  bool regular = log_regular(x);
  float special =
      (is_zero(x) || floatBitsToUint(x) == 0x7f800000u || is_nan(x)) ? x
                                                                     : NAN_F;
  return regular ? y : special;
}
float math_rsqrt(float x) {
  Scaled f = scaled_up(x);
  float v = f.v;
  precise float s = inversesqrt(v);
  // 1 - v s^2 from 12-bit halves of s: v s is rounded, its error is not.
  precise float h = upper12(s);
  precise float l = s - h;
  precise float vh = upper12(v);
  precise float vl = v - vh;
  precise float p = v * s;
  precise float lost = ((vh * h - p) + vh * l + vl * h) + vl * l;
  precise float ph = upper12(p);
  precise float pl = p - ph;
  precise float residual =
      ((1.0 - ph * h) - (ph * l + pl * h)) - (pl * l + lost * s);
  precise float y = (s + (0.5 * s) * residual) * pow2i(-f.n);
  float special = is_zero(x)                  ? copy_sign(INF_F, x)
      : (floatBitsToUint(x) == 0x7f800000u)   ? 0.0
      : is_nan(x)                             ? x
                                              : NAN_F;
  return log_regular(x) ? y : special;
}

// sqrt(x^2 + y^2) without overflow of the squares.
float math_hypot(float x, float y) {
  float a = max(math_abs(x), math_abs(y));
  float b = min(math_abs(x), math_abs(y));
  // A driver's quotient may flush the reciprocal of a > 2^126 to zero.
  float k = a > 4.2535295865117308e37 ? 0.25 : 1.0;
  precise float t = (b * k) / (a * k);
  precise float s = a * math_sqrt(1.0 + t * t);
  // The ratio avoids overflow and underflow; 0 and Inf are handled separately.
  float r = (a == 0.0 || b == 0.0) ? a : s;
  r = (is_nan(x) || is_nan(y)) ? NAN_F : r;
  return (is_inf(x) || is_inf(y)) ? INF_F : r;
}

// ---- inverse circular functions --------------------------------------------

// (asin(s) - s) / s^3 with z = s^2 <= 1/4; fit: asin.
float asin_tail(float z) {
  precise float p = 3.76972891e-2;
  p = p * z + 1.43225277e-2;
  p = p * z + 3.18363272e-2;
  p = p * z + 4.45136316e-2;
  p = p * z + 7.50052109e-2;
  p = p * z + 0.166666597;
  return p;
}
float math_asin(float x) {
  float a = math_abs(x);
  bool inner = a <= 0.5;
  precise float z = inner ? a * a : 0.5 - 0.5 * a;
  precise float s = inner ? a : math_sqrt(z);
  precise float t = (s * z) * asin_tail(z);
  // Outside: pi/2 - 2 asin(sqrt((1 - a) / 2)).
  precise float y = inner
      ? s + t
      : 1.57079637 - (2.0 * s + (2.0 * t + 4.371139e-8));
  y = a > 1.0 ? NAN_F : y;
  return is_nan(x) ? x : copy_sign(y, x);
}
float math_acos(float x) {
  float a = math_abs(x);
  bool inner = a <= 0.5;
  precise float z = inner ? a * a : 0.5 - 0.5 * a;
  precise float s = inner ? x : math_sqrt(z);
  precise float t = (s * z) * asin_tail(z);
  precise float y;
  if (inner) {
    y = 1.57079637 - (s - (-4.371139e-8 - t));
  } else if (x > 0.0) {
    y = 2.0 * (s + t);
  } else {
    y = 3.14159274 - 2.0 * (s + (t + 4.371139e-8));
  }
  y = a > 1.0 ? NAN_F : y;
  return is_nan(x) ? x : y;
}

// atan(a) for a in [0, 1]; fit: atan.
float atan_unit(float a) {
  precise float z = a * a;
  precise float p = 1.11377833e-3;
  p = p * z - 7.3178988e-3;
  p = p * z + 2.25397311e-2;
  p = p * z - 4.46897596e-2;
  p = p * z + 6.7415826e-2;
  p = p * z - 8.81108344e-2;
  p = p * z + 0.11058221;
  p = p * z - 0.142798319;
  p = p * z + 0.19999671;
  p = p * z - 0.333333284;
  precise float y = a + (a * z) * p;
  return y;
}
float math_atan(float x) {
  float a = math_abs(x);
  bool inner = a <= 1.0;
  float y = atan_unit(inner ? a : 1.0 / a);
  precise float outer = 1.57079637 - (y + 4.371139e-8);
  y = inner ? y : outer;
  y = is_inf(x) ? 1.57079637 : y;
  return is_nan(x) ? x : copy_sign(y, x);
}
float math_atan2(float y, float x) {
  float ay = math_abs(y);
  float ax = math_abs(x);
  bool steep = ay > ax;
  float num = steep ? ax : ay;
  float den = steep ? ay : ax;
  // Both infinite: the diagonal. Both zero: the axis given by the sign of x.
  float t = is_inf(num) ? 1.0 : (num == 0.0 || is_inf(den)) ? 0.0 : math_divide(num, den);
  precise float a = atan_unit(t);
  a = steep ? 1.57079637 - (a + 4.371139e-8) : a;
  a = sign_bit(x) ? 3.14159274 - (a + 8.742278e-8) : a;
  return (is_nan(x) || is_nan(y)) ? NAN_F : copy_sign(a, y);
}

// ---- hyperbolic functions --------------------------------------------------

float math_sinh(float x) {
  float a = math_abs(x);
  precise float z = x * x;
  // (sinh(a) - a) / a^3; fit: sinh.
  precise float p = 2.78605967e-6;
  p = p * z + 1.98423426e-4;
  p = p * z + 8.33331235e-3;
  p = p * z + 0.166666672;
  precise float y = a + (a * z) * p;
  if (a > 1.0) {
    precise float e = exp_scaled(min(a, 91.0), -1);
    y = e - 0.25 / e;
  }
  return is_nan(x) ? x : copy_sign(y, x);
}
float math_cosh(float x) {
  precise float e = exp_scaled(min(math_abs(x), 91.0), -1);
  precise float y = e + 0.25 / e;
  return is_nan(x) ? x : y;
}
float math_tanh(float x) {
  float a = math_abs(x);
  precise float z = x * x;
  // (tanh(a) - a) / a^3; fit: tanh.
  precise float p = -6.23164931e-3;
  p = p * z + 2.10437309e-2;
  p = p * z - 5.38461097e-2;
  p = p * z + 0.133325338;
  p = p * z - 0.333333164;
  precise float y = a + (a * z) * p;
  if (a > 0.55) {
    precise float e = exp_scaled(2.0 * min(a, 20.0), 0);
    y = 1.0 - 2.0 / (e + 1.0);
  }
  return is_nan(x) ? x : copy_sign(y, x);
}

float math_asinh(float x) {
  float a = math_abs(x);
  precise float y;
  if (a < 0.5) {
    precise float z = x * x;
    // (asinh(a) - a) / a^3; fit: asinh.
    precise float p = -9.20195878e-3;
    p = p * z + 1.71320867e-2;
    p = p * z - 2.26739924e-2;
    p = p * z + 3.04611698e-2;
    p = p * z - 4.46509682e-2;
    p = p * z + 7.50003532e-2;
    p = p * z - 0.166666672;
    y = a + (a * z) * p;
  } else if (a < 8192.0) {
    precise float z = a * a;
    y = math_log1p(a + z / (1.0 + math_sqrt(1.0 + z)));
  } else {
    y = math_log(a) + 0.693147182;
  }
  return is_nan(x) ? x : copy_sign(y, x);
}
float math_acosh(float x) {
  precise float y;
  if (x < 8192.0) {
    precise float t = x - 1.0;
    y = math_log1p(t + math_sqrt(t * (t + 2.0)));
  } else {
    y = math_log(x) + 0.693147182;
  }
  y = x < 1.0 ? NAN_F : y;
  return is_nan(x) ? x : y;
}
float math_atanh(float x) {
  float a = math_abs(x);
  precise float y;
  if (a < 0.5) {
    precise float z = x * x;
    // (atanh(a) - a) / a^3; fit: atanh.
    precise float p = 0.115561821;
    p = p * z + 6.38207123e-2;
    p = p * z + 6.90147281e-2;
    p = p * z + 9.36380476e-2;
    p = p * z + 0.110713489;
    p = p * z + 0.142885491;
    p = p * z + 0.199999079;
    p = p * z + 0.333333343;
    y = a + (a * z) * p;
  } else {
    y = 0.5 * math_log1p((2.0 * a) / (1.0 - a));
  }
  y = a == 1.0 ? INF_F : a > 1.0 ? NAN_F : y;
  return is_nan(x) ? x : copy_sign(y, x);
}

// ---- error function --------------------------------------------------------

float math_erf(float x) {
  float a = math_abs(x);
  precise float y;
  if (a < 0.925) {
    precise float z = a * a;
    // erf(a) / a - 1; fit: erf.
    precise float p = 7.97898319e-5;
    p = p * z - 8.04347335e-4;
    p = p * z + 5.19184629e-3;
    p = p * z - 2.68555786e-2;
    p = p * z + 0.112836242;
    p = p * z - 0.376126289;
    p = p * z + 0.128379166;
    y = a + a * p;
  } else {
    // log(erfc(a)) + a^2 in a - 2.4; fit: erfc. erfc(3.95) is below 2^-25.
    precise float b = min(a, 3.95);
    precise float t = b - 2.4;
    precise float p = -1.82976546e-5;
    p = p * t + 9.09957671e-5;
    p = p * t - 4.55774367e-4;
    p = p * t + 2.38993438e-3;
    p = p * t - 1.17806261e-2;
    p = p * t + 5.94908744e-2;
    p = p * t - 0.364235818;
    p = p * t - 1.52097428;
    y = 1.0 - exp_scaled(p - b * b, 0);
  }
  return is_nan(x) ? x : copy_sign(y, x);
}

// Error at most 4 ulp.
float math_erfinv(float x) {
  float a = math_abs(x);
  precise float w = -math_log((1.0 - a) * (1.0 + a));
  precise float y;
  if (w < 4.8) {
    // erfinv(a) / a - 1 in w - 2.2; fit: erfinv_mid.
    precise float t = w - 2.2;
    precise float p = -9.0699146e-9;
    p = p * t + 4.70133372e-8;
    p = p * t + 3.85605404e-7;
    p = p * t - 4.36313758e-6;
    p = p * t + 2.09039945e-6;
    p = p * t + 2.20688089e-4;
    p = p * t - 1.51719816e-3;
    p = p * t - 2.93111266e-3;
    p = p * t + 0.248784736;
    p = p * t + 0.427076906;
    y = a + a * p;
  } else {
    // erfinv(a) - 2 in sqrt(w) - 3; fit: erfinv_tail.
    precise float t = math_sqrt(w) - 3.0;
    precise float p = 4.15024988e-5;
    p = p * t - 6.68540742e-5;
    p = p * t - 2.023376e-4;
    p = p * t + 1.15641556e-3;
    p = p * t - 3.45160346e-3;
    p = p * t + 6.84136618e-3;
    p = p * t + 1.0026629;
    p = p * t + 0.832802057;
    y = 2.0 + p;
  }
  y = a == 1.0 ? INF_F : a > 1.0 ? NAN_F : y;
  return is_nan(x) ? x : copy_sign(y, x);
}
