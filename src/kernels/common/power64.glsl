// The functions of power.glsl in float64, included by it in variants that name
// f64.
#pragma once

#include "common/math64.glsl"
#include "common/quotient.glsl"

// a^n for 2 <= n <= 64, so that exact powers stay exact. For |a| < 2^500
// intermediate values overflow only if the result does.
double pow_int(double a, int n) {
  Pair b = Pair(a, 0.0lf), r = Pair(1.0lf, 0.0lf);
  for (int i = 0; i < 7 && n != 0; ++i) {
    if ((n & 1) != 0) {
      r = times(r, b);
    }
    n >>= 1;
    if (n != 0) {
      b = times(b, b);
    }
  }
  return r.h;
}

// |x|^y for finite positive x != 1 and finite y != 0.
double pow_positive(double x, double y) {
  Pair log_x = log_pair(x);
  double about = y * log_x.h;
  if (!(about < 710.0lf)) {
    return INF_D;
  }
  if (!(about > -746.0lf)) {
    return 0.0lf;
  }
  Pair e = times(log_x, Pair(y, 0.0lf));
  return exp_scaled(e.h, e.l, 0);
}

// C's pow, special cases included.
double math_pow(double x, double y) {
  if (y == 0.0lf || x == 1.0lf) {
    return 1.0lf;
  }
  if (is_nan(x) || is_nan(y)) {
    return NAN_D;
  }
  double a = abs(x), ay = abs(y);
  bool integer = ay >= 4503599627370496.0lf || floor(y) == y;
  bool odd = integer && ay < 9007199254740992.0lf &&
      (unpackUint2x32(uint64_t(ay)).x & 1u) != 0u;
  if (is_inf(y)) {
    bool grows = (a > 1.0lf) == (y > 0.0lf);
    return a == 1.0lf ? 1.0lf : grows ? INF_D : 0.0lf;
  }
  double r;
  if (a == 0.0lf || is_inf(a)) {
    r = (a == 0.0lf) == (y > 0.0lf) ? 0.0lf : INF_D;
  } else if (sign_bit(x) && !integer) {
    return NAN_D;
  } else if (y == 1.0lf) {
    return x;
  } else if (y == 2.0lf) {
    double square = x * x;
    return square;
  } else if (y == 0.5lf) {
    return sqrt(x);
  } else if (a == 1.0lf) {
    r = 1.0lf;
  } else {
    r = pow_positive(a, y);
    bool exact = integer && y >= 3.0lf && y <= 64.0lf && r > 1e-200lf &&
        r < 1e300lf;
    if (exact) {
      r = pow_int(a, int(ay));
    }
  }
  return sign_bit(x) && odd ? -r : r;
}

// C's fmod, exact: the quotient is reduced by 11 bits per iteration.
double math_fmod(double x, double y) {
  double ax = abs(x), ay = abs(y);
  if (!is_finite(x) || is_nan(y) || is_zero(y)) {
    return NAN_D;
  }
  if (ax < ay || is_inf(y)) {
    return x;
  }
  uvec2 ux = unpackDouble2x32(ax), uy = unpackDouble2x32(ay);
  int ex = int(ux.y >> 20), ey = int(uy.y >> 20);
  uint64_t mx = packUint2x32(uvec2(ux.x, (ux.y & 0xfffffu) | (ex > 0 ? 0x100000u : 0u)));
  uint64_t my = packUint2x32(uvec2(uy.x, (uy.y & 0xfffffu) | (ey > 0 ? 0x100000u : 0u)));
  ey = max(ey, 1);
  int shift = max(ex, 1) - ey;
  uint64_t r = mx - quotient(mx, my) * my;
  // Exponents of finite numbers differ by at most 2045.
  BOUNDED_WHILE(shift > 0 && r != 0ul, 187) {
    int s = min(shift, 11);
    r <<= s;
    r -= quotient(r, my) * my;
    shift -= s;
  }
  // r 2^(ey - 1075): r has 53 bits, and scales back exactly.
  return copy_sign(scale_pow2(double(r), ey - 1075), x);
}

// Python's modulo, which has the sign of the divisor.
double math_remainder(double x, double y) {
  double r = math_fmod(x, y);
  bool wrong = r != 0.0lf && (r < 0.0lf) != (y < 0.0lf);
  double s = r + y;
  return wrong ? s : r;
}
double math_floor_divide(double x, double y) {
  return floor(x / y);
}
