// The functions of math.glsl in float64, which GLSL has for square roots and
// rounding only. Included by math.glsl in variants that name f64.
//
// Reductions: Cody and Waite (Software Manual for the Elementary Functions,
// 1980); Payne and Hanek (1983) for large circular arguments. Sums and products
// of two doubles: Dekker (1971). Polynomials are Taylor's, or fitted by
// tools/fit_math.py ("fit: name"). Errors are at most 2 ulp
// (tests/backend/test_float64.py).
#pragma once

#include "common/numeric.glsl"

double math_abs(double x) {
  return abs(x);
}
double copy_sign(double magnitude, double sign) {
  return sign_bit(sign) ? -abs(magnitude) : abs(magnitude);
}
// 2^n for n in [-1022, 1023].
double pow2d(int n) {
  return packDouble2x32(uvec2(0u, uint(n + 1023) << 20));
}
// x * 2^n for n in [-2044, 2046], rounded once.
double scale_pow2(double x, int n) {
  int h = n >> 1;
  return x * pow2d(h) * pow2d(n - h);
}
double math_divide(double x, double y) {
  return x / y;
}

// A polynomial from the coefficient of its highest power on.
#define POLYNOMIAL(NAME, N)                                                   \
  double NAME(double x) {                                                     \
    double y = NAME##_of[0];                                          \
    [[unroll]] for (int k = 1; k < N; ++k) {                                  \
      y = y * x + NAME##_of[k];                                               \
    }                                                                         \
    return y;                                                                 \
  }

// ---- numbers of two doubles, h + l with |l| <= ulp(h) / 2 ------------------

struct Pair {
  double h, l;
};
// a + b for |a| >= |b|.
Pair fast_sum(double a, double b) {
  double h = a + b;
  double l = b - (h - a);
  return Pair(h, l);
}
Pair exact_sum(double a, double b) {
  double h = a + b;
  double t = h - a;
  double l = (a - (h - t)) + (b - t);
  return Pair(h, l);
}
// Upper 26 bits of the mantissa.
double upper26(double x) {
  uvec2 u = unpackDouble2x32(x);
  return packDouble2x32(uvec2(u.x & 0xf8000000u, u.y));
}
Pair exact_product(double a, double b) {
  double h = a * b;
  double ah = upper26(a);
  double al = a - ah;
  double bh = upper26(b);
  double bl = b - bh;
  double l = ((ah * bh - h) + ah * bl + al * bh) + al * bl;
  return Pair(h, l);
}
Pair plus(Pair a, Pair b) {
  Pair s = exact_sum(a.h, b.h);
  double l = s.l + (a.l + b.l);
  return fast_sum(s.h, l);
}
Pair times(Pair a, Pair b) {
  Pair p = exact_product(a.h, b.h);
  double l = p.l + (a.h * b.l + a.l * b.h);
  return fast_sum(p.h, l);
}

const Pair LN2 = Pair(0.69314718055994529lf, 2.3190468138462996e-17lf);
const Pair HALF_PI = Pair(1.5707963267948966lf, 6.123233995736766e-17lf);

// ---- exponentials ----------------------------------------------------------

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
const double exp_tail_of[12] = double[](
    1.6059043836821613e-10lf, 2.08767569878681e-9lf, 2.505210838544172e-8lf,
    2.7557319223985888e-7lf, 2.7557319223985893e-6lf, 2.4801587301587302e-5lf,
    1.9841269841269841e-4lf, 1.3888888888888889e-3lf, 8.3333333333333332e-3lf,
    4.1666666666666664e-2lf, 1.6666666666666666e-1lf, 0.5lf);
POLYNOMIAL(exp_tail, 12)

// x = k ln(2) + r.h + r.l; ln(2) has 41 bits and a rest here.
Pair reduce_exp(double x, out int k) {
  double n = roundEven(x * 1.4426950408889634lf);
  double high = x - n * 0.69314718055966296lf;
  k = int(n);
  double low = n * 2.8235290563031577e-13lf;
  return exact_sum(high, -low);
}
// e^(x + low) 2^n for x in [-746, 711] and n in [-2, 2].
double exp_scaled(double x, double low, int n) {
  int k;
  Pair r = reduce_exp(x, k);
  r = exact_sum(r.h, r.l + low);
  double y = 1.0lf + (r.h + (r.l + (r.h * r.h) * exp_tail(r.h)));
  return scale_pow2(y, k + n);
}
double exp_scaled(double x, int n) {
  return exp_scaled(x, 0.0lf, n);
}
double math_exp(double x) {
  double y = exp_scaled(min(max(x, -746.0lf), 711.0lf), 0);
  return is_nan(x) ? x : y;
}
double math_expm1(double x) {
  int k;
  double c = min(max(x, -40.0lf), 710.0lf);
  Pair r = reduce_exp(c, k);
  double p = r.h + (r.l + (r.h * r.h) * exp_tail(r.h));
  // 2^k (p + 1 - 2^-k), halved so that k = 1024 is in range.
  double rest = k < 64 ? 1.0lf - pow2d(-k) : 1.0lf;
  double y = 2.0lf * (pow2d(k - 1) * (p + rest));
  y = k == 0 ? p : y;
  return is_nan(x) || is_zero(x) ? x : y;
}

// ---- logarithms ------------------------------------------------------------

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite x.
struct LogParts64 {
  double m;
  int e;
};
LogParts64 log_parts(double x) {
  uvec2 u = unpackDouble2x32(x);
  int shift = 0;
  if (u.y < 0x00100000u) { // subnormal: its bits as an integer times 2^-1074
    u = unpackDouble2x32(double(packUint2x32(u)));
    shift = -1074;
  }
  uint top = u.y - 0x3fe6a09eu; // bits of sqrt(1/2)
  return LogParts64(
      packDouble2x32(uvec2(u.x, (top & 0xfffffu) + 0x3fe6a09eu)),
      (int(top) >> 20) + shift);
}
// Positive and finite.
bool log_regular(double x) {
  return x > 0.0lf && is_finite(x);
}
double log_special(double x) {
  return is_zero(x) ? -INF_D : sign_bit(x) && !is_nan(x) ? NAN_D : x;
}

// log((1 + s) / (1 - s)) = 2 s + s^3 (2/3 + s^2 log_tail(s^2)), |s| < 0.172.
const double log_tail_of[10] = double[](
    8.6956521739130432e-2lf, 9.5238095238095233e-2lf, 0.10526315789473684lf,
    0.11764705882352941lf, 0.13333333333333333lf, 0.15384615384615385lf,
    0.18181818181818182lf, 0.22222222222222221lf, 0.2857142857142857lf,
    0.40000000000000002lf);
POLYNOMIAL(log_tail, 10)

// log(1 + f) + e ln(2) + c.
double log_sum(double f, int e, double c) {
  double s = f / (2.0lf + f);
  double z = s * s;
  double half_square = 0.5lf * f * f;
  double series = z * log_tail(z) + 0.66666666666666663lf;
  double tail = s * (half_square + z * series);
  double k = double(e);
  double low = tail + (k * 2.8235290563031577e-13lf + c);
  return k * 0.69314718055966296lf - ((half_square - low) - f);
}
double math_log(double x) {
  LogParts64 p = log_parts(x);
  double y = log_sum(p.m - 1.0lf, p.e, 0.0lf);
  return log_regular(x) ? y : log_special(x);
}
double math_log1p(double x) {
  double u = 1.0lf + x;
  bool small = x > -0.29lf && x < 0.41lf;
  LogParts64 p = log_parts(u);
  double lost = (x < 1.0lf ? x - (u - 1.0lf) : 1.0lf - (u - x)) / u;
  double y = log_sum(
      small ? x : p.m - 1.0lf, small ? 0 : p.e, small ? 0.0lf : lost);
  y = is_zero(x) ? x : y;
  return log_regular(u) ? y : log_special(is_nan(x) ? x : u);
}

// log(x) to some 68 bits: m / c, c = 3/4, 1 or 5/4, has |s| below 0.072.
Pair log_pair(double x) {
  LogParts64 p = log_parts(x);
  bool low = p.m < 0.866lf, high = p.m > 1.118lf;
  double c = low ? 0.75lf : high ? 1.25lf : 1.0lf;
  Pair of_c = low ? Pair(-0.2876820724517809lf, -2.607160616442564e-17lf)
      : high      ? Pair(0.22314355131420976lf, -9.091270597324799e-18lf)
                  : Pair(0.0lf, 0.0lf);
  double n = p.m - c;
  Pair d = exact_sum(p.m, c);
  double q = n / d.h;
  Pair back = exact_product(q, d.h);
  double rest = (((n - back.h) - back.l) - q * d.l) / d.h;
  Pair s = fast_sum(q, rest);
  Pair z = times(s, s);
  double tail = z.h * log_tail(z.h);
  Pair factor = plus(
      Pair(tail, 0.0lf), Pair(0.66666666666666663lf, 3.7007434154171883e-17lf));
  Pair y = plus(Pair(2.0lf * s.h, 2.0lf * s.l), times(times(s, z), factor));
  double k = double(p.e);
  return plus(plus(times(Pair(k, 0.0lf), LN2), of_c), y);
}
double math_log2(double x) {
  Pair y = log_pair(x);
  y = times(y, Pair(1.4426950408889634lf, 2.0355273740931033e-17lf));
  return log_regular(x) ? y.h : log_special(x);
}
double math_log10(double x) {
  Pair y = log_pair(x);
  y = times(y, Pair(0.43429448190325182lf, 1.0983196502167651e-17lf));
  return log_regular(x) ? y.h : log_special(x);
}

// ---- circular functions ----------------------------------------------------

// x = q pi/2 + r + tail; q is needed modulo 4.
struct CircleParts64 {
  double r, tail;
  int q;
};

// Two zero words, then those of 2/pi.
const uint two_over_pi_words[41] = uint[](
    0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
    0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u,
    0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u,
    0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u,
    0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu,
    0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
    0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
    0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u);

// For |x| >= 2^20: skips bits of 2/pi that contribute only multiples of 4 to
// x 2/pi, and multiplies the next 192 by the mantissa, modulo 4.
CircleParts64 reduce_large(double x) {
  uvec2 u = unpackDouble2x32(x);
  uint exponent = (u.y >> 20) & 0x7ffu;
  uint high = (u.y & 0xfffffu) | 0x100000u;
  uint start = min(exponent - 1023u, 1023u) + 10u; // first bit used
  uint word = start >> 5, shift = start & 31u;
  uint bits[6], product[6];
  uint64_t carry = 0ul;
  for (int i = 5; i >= 0; --i) {
    uint w = two_over_pi_words[word + i];
    uint next = two_over_pi_words[word + i + 1];
    bits[i] = shift == 0u ? w : (w << shift) | (next >> (32u - shift));
    uint64_t t = uint64_t(u.x) * uint64_t(bits[i]) + carry;
    product[i] = uint(t);
    carry = t >> 32;
  }
  carry = 0ul;
  for (int i = 4; i >= 0; --i) {
    uint64_t t =
        uint64_t(high) * uint64_t(bits[i + 1]) + uint64_t(product[i]) + carry;
    product[i] = uint(t);
    carry = t >> 32;
  }
  // x 2/pi modulo 4 in units of 2^-190: two bits, then a fraction of which 128
  // bits are used, as a signed number.
  int q = int(product[0] >> 30);
  uint64_t a = (packUint2x32(uvec2(product[1], product[0])) << 2) |
      uint64_t(product[2] >> 30);
  uint64_t b = (packUint2x32(uvec2(product[3], product[2])) << 2) |
      uint64_t(product[4] >> 30);
  q += int(a >> 63);
  Pair v = fast_sum(
      double(int64_t(a & ~uint64_t(0x7ff))) * 5.4210108624275222e-20lf,
      double(uint(a) & 0x7ffu) * 5.4210108624275222e-20lf);
  v = plus(v, Pair(double(b) * 2.9387358770557188e-39lf, 0.0lf));
  v = times(v, HALF_PI);
  bool negative = sign_bit(x);
  return CircleParts64(
      negative ? -v.h : v.h, negative ? -v.l : v.l, negative ? -q : q);
}

// pi/2 in parts of 33, 33 and 53 bits: products of the first two are exact.
CircleParts64 reduce_circle(double x) {
  if (!(abs(x) < 1048576.0lf)) {
    return reduce_large(x);
  }
  double k = roundEven(x * 0.63661977236758138lf);
  double t = x - k * 1.5707963267341256lf;
  Pair a = exact_sum(t, -(k * 6.077100506303966e-11lf));
  Pair b = exact_sum(a.h, -(k * 2.0222662487959506e-21lf));
  return CircleParts64(b.h, a.l + b.l, int(k));
}

// Taylor's series of (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2.
const double sin_tail_of[9] = double[](
    1.9572941063391263e-20lf, -8.2206352466243295e-18lf,
    2.8114572543455206e-15lf, -7.6471637318198164e-13lf,
    1.6059043836821613e-10lf, -2.505210838544172e-8lf,
    2.7557319223985893e-6lf, -1.9841269841269841e-4lf, 8.3333333333333332e-3lf);
const double cos_tail_of[8] = double[](
    4.1103176233121648e-19lf, -1.5619206968586225e-16lf,
    4.7794773323873853e-14lf, -1.1470745597729725e-11lf, 2.08767569878681e-9lf,
    -2.7557319223985888e-7lf, 2.4801587301587302e-5lf,
    -1.3888888888888889e-3lf);
POLYNOMIAL(sin_tail, 9)
POLYNOMIAL(cos_tail, 8)

double sin_kernel(double r, double tail) {
  double z = r * r;
  double p = sin_tail(z) * z - 0.16666666666666666lf;
  return r + ((r * z) * p + tail * (1.0lf - 0.5lf * z));
}
double cos_kernel(double r, double tail) {
  double z = r * r;
  double p = cos_tail(z) * z + 4.1666666666666664e-2lf;
  double h = 0.5lf * z;
  double w = 1.0lf - h;
  return w + (((1.0lf - w) - h) + ((z * z) * p - r * tail));
}
double math_sin(double x) {
  CircleParts64 p = reduce_circle(x);
  double y = (p.q & 1) != 0 ? cos_kernel(p.r, p.tail) : sin_kernel(p.r, p.tail);
  y = (p.q & 2) != 0 ? -y : y;
  y = is_zero(x) ? x : y;
  return is_finite(x) ? y : NAN_D;
}
double math_cos(double x) {
  CircleParts64 p = reduce_circle(x);
  double y = (p.q & 1) != 0 ? sin_kernel(p.r, p.tail) : cos_kernel(p.r, p.tail);
  y = ((p.q + 1) & 2) != 0 ? -y : y;
  return is_finite(x) ? y : NAN_D;
}
double math_tan(double x) {
  CircleParts64 p = reduce_circle(x);
  double s = sin_kernel(p.r, p.tail), c = cos_kernel(p.r, p.tail);
  double y = (p.q & 1) != 0 ? -c / s : s / c;
  y = is_zero(x) ? x : y;
  return is_finite(x) ? y : NAN_D;
}

// ---- square roots ----------------------------------------------------------

double math_sqrt(double x) {
  return x < 0.0lf ? NAN_D : sqrt(x);
}
double math_rsqrt(double x) {
  return 1.0lf / math_sqrt(x);
}

// ---- inverse circular functions --------------------------------------------

// (asin(s) - s) / s^3 in s^2 <= 1/4; fit: asin64.
const double asin_series_of[13] = double[](
    0.032702317417069429lf, -0.021116986734236624lf, 0.021790852172221611lf,
    0.003672092800717802lf, 0.010789348194059755lf, 0.011397287646331911lf,
    0.013981019283234187lf, 0.017351595428716709lf, 0.02237221591050256lf,
    0.030381942675087734lf, 0.044642857175290894lf, 0.074999999999700917lf,
    0.16666666666666763lf);
POLYNOMIAL(asin_series, 13)

// asin of a <= 1/2, else asin of sqrt((1 - a) / 2), as a sum.
Pair asin_parts(double a, bool inner) {
  double z = inner ? a * a : 0.5lf - 0.5lf * a;
  double s = inner ? a : sqrt(z);
  Pair square = exact_product(s, s);
  double lost = ((z - square.h) - square.l) / (2.0lf * s);
  double t = (s * z) * asin_series(z);
  return Pair(s, inner || s == 0.0lf ? t : t + lost);
}
double math_asin(double x) {
  double a = abs(x);
  bool inner = a <= 0.5lf;
  Pair p = asin_parts(a, inner);
  double y = inner
      ? p.h + p.l
      : HALF_PI.h - (2.0lf * p.h + (2.0lf * p.l - HALF_PI.l));
  y = a > 1.0lf ? NAN_D : y;
  return is_nan(x) ? x : copy_sign(y, x);
}
double math_acos(double x) {
  double a = abs(x);
  bool inner = a <= 0.5lf;
  Pair p = asin_parts(a, inner);
  double sign = x < 0.0lf ? -1.0lf : 1.0lf;
  double near = HALF_PI.h - (sign * p.h - (HALF_PI.l - sign * p.l));
  double above = 2.0lf * (p.h + p.l);
  double below = 2.0lf * (HALF_PI.h - (p.h + (p.l - HALF_PI.l)));
  double y = inner ? near : x > 0.0lf ? above : below;
  y = a > 1.0lf ? NAN_D : y;
  return is_nan(x) ? x : y;
}

// (atan(a) - a) / a^3 in a^2, a <= tan(pi / 8); fit: atan64.
const double atan_series_of[12] = double[](
    0.015199040260487944lf, -0.033478296761655015lf, 0.045037149196490413lf,
    -0.052184452314615846lf, 0.058770281665809228lf, -0.066662274104338101lf,
    0.076922828031020254lf, -0.090909081465061575lf, 0.11111111088233074lf,
    -0.14285714285388906lf, 0.19999999999997675lf, -0.33333333333333326lf);
POLYNOMIAL(atan_series, 12)

// atan(n / d) for 0 <= n <= d, as a sum.
Pair atan_unit(double n, double d) {
  bool far = n > 0.41421356237309503lf * d;
  double a = far ? (n - d) / (n + d) : n / d;
  double z = a * a;
  double t = (a * z) * atan_series(z);
  Pair y = fast_sum(far ? 0.5lf * HALF_PI.h : a, far ? a : t);
  return Pair(y.h, far ? y.l + (t + 0.5lf * HALF_PI.l) : y.l);
}
double math_atan(double x) {
  double a = abs(x);
  bool inner = a <= 1.0lf;
  Pair p = is_inf(x) ? Pair(0.0lf, 0.0lf)
                     : atan_unit(inner ? a : 1.0lf, inner ? 1.0lf : a);
  double y = p.h + p.l;
  double outer = HALF_PI.h - (p.h + (p.l - HALF_PI.l));
  return is_nan(x) ? x : copy_sign(inner ? y : outer, x);
}
double math_atan2(double y, double x) {
  double ay = abs(y), ax = abs(x);
  bool steep = ay > ax;
  double n = steep ? ax : ay, d = steep ? ay : ax;
  // Sums and quotients stay in range.
  double k = d > 4.4942328371557898e307lf ? 0.25lf : d < 1e-290lf ? 1e16lf : 1.0lf;
  // Both infinite: the diagonal. Both zero: the axis given by the sign of x.
  bool axis = n == 0.0lf || is_inf(d);
  Pair p = is_inf(n) ? atan_unit(1.0lf, 1.0lf)
      : axis         ? Pair(0.0lf, 0.0lf)
                     : atan_unit(n * k, d * k);
  double a = p.h + p.l;
  if (steep) {
    Pair s = exact_sum(HALF_PI.h, -p.h);
    p = Pair(s.h, s.l + (HALF_PI.l - p.l));
    a = p.h + p.l;
  }
  double behind = 2.0lf * HALF_PI.h - (p.h + (p.l - 2.0lf * HALF_PI.l));
  a = sign_bit(x) ? behind : a;
  return is_nan(x) || is_nan(y) ? NAN_D : copy_sign(a, y);
}

// ---- hyperbolic functions --------------------------------------------------

// Taylor's (sinh(a) - a) / a^3 in a^2, a <= 1.
const double sinh_tail_of[9] = double[](
    1.9572941063391263e-20lf, 8.2206352466243295e-18lf,
    2.8114572543455206e-15lf, 7.6471637318198164e-13lf,
    1.6059043836821613e-10lf, 2.505210838544172e-8lf, 2.7557319223985893e-6lf,
    1.9841269841269841e-4lf, 8.3333333333333332e-3lf);
POLYNOMIAL(sinh_tail, 9)

double math_sinh(double x) {
  double a = abs(x);
  double z = x * x;
  double y =
      a + (a * z) * (sinh_tail(z) * z + 0.16666666666666666lf);
  if (a > 1.0lf) {
    double e = exp_scaled(min(a, 711.0lf), -1);
    y = e - 0.25lf / e;
  }
  return is_nan(x) ? x : copy_sign(y, x);
}
double math_cosh(double x) {
  double e = exp_scaled(min(abs(x), 711.0lf), -1);
  double y = e + 0.25lf / e;
  return is_nan(x) ? x : y;
}
double math_tanh(double x) {
  double a = abs(x);
  double y;
  if (a < 0.55lf) {
    double t = math_expm1(-2.0lf * a);
    y = -t / (t + 2.0lf);
  } else {
    double e = exp_scaled(2.0lf * min(a, 40.0lf), 0);
    y = 1.0lf - 2.0lf / (e + 1.0lf);
  }
  return is_nan(x) || is_zero(x) ? x : copy_sign(y, x);
}
double math_asinh(double x) {
  double a = abs(x);
  double z = a * a;
  double near = math_log1p(a + z / (1.0lf + sqrt(1.0lf + z)));
  double y = a < 268435456.0lf ? near : math_log(a) + LN2.h;
  return is_nan(x) || is_zero(x) ? x : copy_sign(y, x);
}
double math_acosh(double x) {
  double t = x - 1.0lf;
  double near = math_log1p(t + math_sqrt(t * (t + 2.0lf)));
  double y = x < 268435456.0lf ? near : math_log(x) + LN2.h;
  y = x < 1.0lf ? NAN_D : y;
  return is_nan(x) ? x : y;
}
double math_atanh(double x) {
  double a = abs(x);
  double t = a + a;
  t = a < 0.5lf ? t + t * a / (1.0lf - a) : t / (1.0lf - a);
  double y = 0.5lf * math_log1p(t);
  y = a == 1.0lf ? INF_D : a > 1.0lf ? NAN_D : y;
  return is_nan(x) || is_zero(x) ? x : copy_sign(y, x);
}

// ---- error function --------------------------------------------------------

// erf(a) / a - 1 in a^2, a <= 1; fit: erf64.
const double erf_series_of[14] = double[](
    -4.2331350012737869e-12lf, 8.7104681987285656e-11lf,
    -1.2164969228736782e-9lf, 1.4792469709482079e-8lf, -1.6364649554202089e-7lf,
    1.6462045980426493e-6lf, -1.4925647594473676e-5lf, 0.00012055332903811123lf,
    -8.5483270219559749e-4lf, 0.005223977625423609lf, -0.026866170645129868lf,
    0.11283791670955121lf, -0.37612638903183754lf, 0.12837916709551259lf);
// log(erfc(a)) + a^2 in a - 3.4; fit: erfc64. erfc(5.95) is below 2^-54.
const double erfc_log_of[20] = double[](
    -1.6444901999913694e-13lf, -2.2589594852451016e-12lf,
    -1.3161105543752689e-11lf, -4.0552819311267396e-11lf,
    -4.323026588712866e-11lf, 7.8294831310511348e-11lf, 4.6456154344079696e-10lf,
    4.8354694187690338e-10lf, -8.0274676367220421e-10lf,
    9.1595669054213697e-9lf, -9.2017234491276368e-8lf, 6.6253592253480102e-7lf,
    -4.3872141029271824e-6lf, 2.7280888974266243e-5lf, -1.6278016044939017e-4lf,
    9.5113428300480684e-4lf, -0.0055903647076111351lf, 0.034868574349536711lf,
    -0.27290931704789134lf, -1.8354896593338554lf);
POLYNOMIAL(erf_series, 14)
POLYNOMIAL(erfc_log, 20)

double math_erf(double x) {
  double a = abs(x);
  double b = min(a, 5.95lf);
  double inner = a + a * erf_series(a * a);
  double outer = 1.0lf - exp_scaled(erfc_log(b - 3.4lf) - b * b, 0);
  return is_nan(x) ? x : copy_sign(a < 1.0lf ? inner : outer, x);
}

// erfinv(a) / a - 1 in w - 3.125, w = -log(1 - a^2) <= 6.25; erfinv(a) in
// sqrt(w) - 3.25 and in sqrt(w) - 5 (Giles, GPU Computing Gems, 2011). Fits:
// erfinv64_mid, erfinv64_tail, erfinv64_end.
const double erfinv_mid_of[24] = double[](
    3.1432453971854044e-21lf, -1.0134759362995446e-21lf,
    -3.4452913803817547e-19lf, 1.1446414871249118e-18lf,
    1.5442801476992127e-17lf, -1.3004428115908004e-16lf,
    -3.8468181017935099e-17lf, 6.5947669838660079e-15lf,
    -4.0028073181388449e-14lf, -8.1170624314350693e-14lf,
    2.6305719286136012e-12lf, -1.2976955499901514e-11lf,
    -5.4143198326375262e-11lf, 1.0512183891018736e-9lf,
    -4.1126600479702966e-9lf, -2.9070382755301252e-8lf, 4.2347881626443217e-7lf,
    -1.3654691844590746e-6lf, -1.3882523393514651e-5lf,
    1.8673420802427199e-4lf, -7.4070253415480479e-4lf,
    -0.0060336708714277577lf, 0.24015818242558837lf, 0.65365456268310274lf);
const double erfinv_tail_of[18] = double[](
    -1.0740615263037096e-9lf, -5.4483309447899639e-9lf, 2.5618073766626536e-8lf,
    -2.155103584435274e-8lf, -9.6562589141180402e-8lf, 3.9949984805258442e-7lf,
    -6.193303968717376e-7lf, -4.653883738447388e-7lf, 5.0822809605767684e-6lf,
    -1.380766173744879e-5lf, 1.707477213971237e-5lf, 2.4145114023838247e-5lf,
    -2.2201675787459997e-4lf, 8.5602607134878644e-4lf,
    -0.0024458934121198341lf, 0.0046526098392034925lf, 1.0055052352452993lf,
    3.0838457231032428lf);
const double erfinv_end_of[17] = double[](
    -6.9675492448109507e-12lf, 2.489129907290624e-11lf,
    -4.0303678322045429e-11lf, 4.9286623794199494e-11lf,
    4.760193883108085e-11lf, -1.0061525183826441e-9lf, 6.7664662156053642e-9lf,
    -3.7540324780309596e-8lf, 1.9420963575665029e-7lf, -9.5851232262595738e-7lf,
    4.4971863828006882e-6lf, -1.966172726119878e-5lf, 7.598401191568206e-5lf,
    -0.0002150251873883456lf, -1.3872089842699789e-4lf, 1.0103004651943051lf,
    4.8499064013749065lf);
POLYNOMIAL(erfinv_mid, 24)
POLYNOMIAL(erfinv_tail, 18)
POLYNOMIAL(erfinv_end, 17)

double math_erfinv(double x) {
  double a = abs(x);
  double w = -math_log((1.0lf - a) * (1.0lf + a));
  double y;
  if (w < 6.25lf) {
    y = a + a * erfinv_mid(w - 3.125lf);
  } else {
    double s = sqrt(w);
    y = s < 4.0lf ? erfinv_tail(s - 3.25lf) : erfinv_end(s - 5.0lf);
  }
  y = a == 1.0lf ? INF_D : a > 1.0lf ? NAN_D : y;
  return is_nan(x) ? x : copy_sign(y, x);
}
