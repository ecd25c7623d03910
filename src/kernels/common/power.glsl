// pow, fmod and floor division, with the conventions of math.glsl.
#pragma once

#include "common/loops.glsl"
#include "common/math.glsl"
#if FLOAT64
#include "common/power64.glsl"
#endif

// ---- power -----------------------------------------------------------------

// a^n for 2 <= n <= 64 as an unevaluated sum of two floats, so that exact
// powers stay exact. For |a| < 2^60 intermediate values overflow only if the
// result does.
float pow_int(float a, int n) {
  precise float bh = a;
  precise float bl = 0.0;
  precise float rh = 1.0;
  precise float rl = 0.0;
  for (int i = 0; i < 7; ++i) {
    // Products from 12-bit halves: h + l = b * b or r * b.
    precise float bu = upper12(bh);
    precise float bd = bh - bu;
    if ((n & 1) != 0) {
      precise float ru = upper12(rh);
      precise float rd = rh - ru;
      precise float h = rh * bh;
      precise float l = (((ru * bu - h) + ru * bd) + rd * bu) + rd * bd;
      l = l + (rh * bl + rl * bh);
      rh = h + l;
      rl = (h - rh) + l;
    }
    n >>= 1;
    if (n == 0) {
      break;
    }
    precise float h = bh * bh;
    precise float l = ((bu * bu - h) + 2.0 * (bu * bd)) + bd * bd;
    l = l + 2.0 * (bh * bl);
    bh = h + l;
    bl = (h - bh) + l;
  }
  return rh;
}

// |x|^y for finite positive x != 1 and finite y != 0.
float pow_positive(float x, float y) {
  LogParts parts = log_parts(x);
  precise float m = parts.m;
  // log(m / c) = 2 atanh(s), s = (m - c) / (m + c) = sh + sl, sh of 12 bits;
  // c = 3/4, 1 or 5/4 keeps |s| below 0.072. log2(c) in two parts.
  bool low = m < 0.866;
  bool high = m > 1.118;
  float c0 = low ? 0.75 : high ? 1.25 : 1.0;
  float lh = low ? -0.4149169921875 : high ? 0.3218994140625 : 0.0;
  float ll = low ? -0.000120507091 : high ? 2.86808249e-05 : 0.0;
  precise float n = m - c0;
  precise float d = m + c0;
  precise float s = n / d;
  precise float sh = upper12(s);
  precise float dh = upper12(d);
  precise float dl = m - (dh - c0);
  precise float sl = ((n - sh * dh) - sh * dl) / d;
  precise float z = s * s;
  // (atanh(s) / s - 1) / z; fit: pow_log.
  precise float p = 0.144613251;
  p = p * z + 0.199992076;
  p = p * z + 0.333333343;
  precise float v = sl + s * (z * p);
  precise float ah = upper12(sh + v);
  precise float al = v - (ah - sh);
  // log2(x) = e + (ah + al) 2/ln(2), with 2/ln(2) = 2.884765625 (12 bits) +
  // 6.24456778e-4, as th + tl with th of 12 bits.
  precise float e = float(parts.e) + lh;
  precise float c = ah * 2.884765625;
  precise float cl = (ah * 6.24456778e-4 + al * 2.88539008) + ll;
  precise float t = e + c;
  precise float lost = (e - t) + c;
  cl = cl + (e == 0.0 ? 0.0 : lost);
  precise float th = upper12(t + cl);
  precise float tl = (t - th) + cl;
  // y log2(x) = ph + pl.
  precise float yh = upper12(y);
  precise float yl = y - yh;
  precise float ph = yh * th;
  precise float pl = yl * th + y * tl;
  precise float sum = ph + pl;
  if (!(sum < 130.0)) {
    return INF_F;
  }
  if (!(sum > -152.0)) {
    return 0.0;
  }
  precise float k = floor(sum + 0.5);
  precise float r = (ph - k) + pl;
  precise float q = 1.46979928e-5; // fit: exp2
  q = q * r + 1.54535242e-4;
  q = q * r + 1.33365986e-3;
  q = q * r + 9.61808488e-3;
  q = q * r + 5.55040613e-2;
  q = q * r + 0.240226507;
  q = q * r + 0.693147182;
  precise float result = 1.0 + q * r;
  return scale_pow2(result, int(k));
}

// C's pow, special cases included.
float math_pow(float x, float y) {
  if (y == 0.0 || floatBitsToUint(x) == 0x3f800000u) {
    return 1.0;
  }
  if (is_nan(x) || is_nan(y)) {
    return NAN_F;
  }
  float a = math_abs(x);
  float ay = math_abs(y);
  bool integer = ay >= 8388608.0 || floor(y) == y;
  bool odd = integer && ay < 16777216.0 && (int(ay) & 1) != 0;
  if (is_inf(y)) {
    bool grows = (a > 1.0) == (y > 0.0);
    return a == 1.0 ? 1.0 : grows ? INF_F : 0.0;
  }
  float r;
  if (a == 0.0 || is_inf(a)) {
    r = ((a == 0.0) == (y > 0.0)) ? 0.0 : INF_F;
  } else if (sign_bit(x) && !integer) {
    return NAN_F;
  } else if (y == 1.0) {
    return x;
  } else if (y == 2.0) {
    precise float square = x * x;
    return square;
  } else if (y == 0.5) {
    return math_sqrt(x);
  } else if (a == 1.0) {
    r = 1.0;
  } else {
    r = pow_positive(a, y);
    // Recomputes small powers exactly where the range of two floats allows.
    bool exact = integer && y >= 3.0 && y <= 64.0 && r > 1e-25 && r < 1e37;
    if (exact) {
      r = pow_int(a, int(ay));
    }
  }
  return (sign_bit(x) && odd) ? -r : r;
}

// ---- division with floor ---------------------------------------------------

// C's fmod, exact: the quotient is reduced by 32 bits per iteration.
float math_fmod(float x, float y) {
  uint ux = floatBitsToUint(x) & 0x7fffffffu;
  uint uy = floatBitsToUint(y) & 0x7fffffffu;
  if (ux >= 0x7f800000u || uy > 0x7f800000u || uy == 0u) {
    return NAN_F;
  }
  if (ux < uy) {
    return x;
  }
  int ex = int(ux >> 23);
  int ey = int(uy >> 23);
  uint mx = (ux & 0x7fffffu) | (ex > 0 ? 0x800000u : 0u);
  uint my = (uy & 0x7fffffu) | (ey > 0 ? 0x800000u : 0u);
  ex = max(ex, 1);
  ey = max(ey, 1);
  int shift = ex - ey;
  uint r = mx % my;
  // Exponents of finite numbers differ by at most 253.
  BOUNDED_WHILE(shift > 0 && r != 0u, 8) {
    int s = min(shift, 32);
    r = uint((uint64_t(r) << s) % uint64_t(my));
    shift -= s;
  }
  // r 2^(ey - 150), normalized without floating-point arithmetic.
  if (r == 0u) {
    return copy_sign(0.0, x);
  }
  int lead = 23 - findMSB(r);
  uint bits;
  if (ey - lead > 0) {
    bits = ((r << lead) & 0x7fffffu) | (uint(ey - lead) << 23);
  } else {
    bits = r << (ey - 1);
  }
  return uintBitsToFloat(bits | (floatBitsToUint(x) & 0x80000000u));
}

// Python's modulo, which has the sign of the divisor.
float math_remainder(float x, float y) {
  precise float r = math_fmod(x, y);
  bool wrong = r != 0.0 && (r < 0.0) != (y < 0.0);
  precise float s = r + y;
  return wrong ? s : r;
}

// floor of the rounded quotient, as in C.
float math_floor_divide(float x, float y) {
  return floor(math_divide(x, y));
}
