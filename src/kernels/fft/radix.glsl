// Forward discrete Fourier transforms of 2 to 16 items in registers, in natural
// order, and roots of unity.
#pragma once

// exp(-2 pi i turns / 2^32), within 0.8 ulp of 1: reduction to the nearest
// quarter turn by bits, then polynomials for sine and cosine of the rest (at
// most 1/8 turn). 2 pi is split in two parts, so that the sine is rounded once.
vec2 root_at(uint turns) {
  uint quarter = (turns + 0x20000000u) >> 30;
  float x = float(int(turns - (quarter << 30))) * 2.3283064365386963e-10;
  float z = x * x;
  float s = fma(z, 42.058693944898, -76.705859753061);
  s = fma(z, s, 81.605249276075);
  s = fma(z, s, -41.341702240400);
  s = fma(x, 6.2831854820251465, x * fma(z, s, -1.7484555e-7));
  float c = fma(z, -26.426256783374, 60.244641371877);
  c = fma(z, c, -85.456817206694);
  c = fma(z, c, 64.939394022668);
  c = fma(z, c, -19.739208802179);
  c = fma(z, c, 1.0);
  bool odd = (quarter & 1u) != 0u;
  vec2 r = odd ? vec2(s, c) : vec2(c, s);
  r.x = ((quarter + 1u) & 2u) != 0u ? -r.x : r.x;
  r.y = quarter < 2u ? -r.y : r.y;
  return r;
}

vec2 times(vec2 a, vec2 b) {
  return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
vec2 over_i(vec2 a) {
  return vec2(a.y, -a.x);
}

void dft1(inout vec2 x[1]) {}

void dft2(inout vec2 x[2]) {
  vec2 a = x[0];
  x[0] = a + x[1];
  x[1] = a - x[1];
}

void dft4(inout vec2 x[4]) {
  vec2 a = x[0] + x[2], b = x[0] - x[2];
  vec2 c = x[1] + x[3], d = over_i(x[1] - x[3]);
  x[0] = a + c;
  x[1] = b + d;
  x[2] = a - c;
  x[3] = b - d;
}

// Odd lengths combine mirrored items into sums and differences.
void dft3(inout vec2 x[3]) {
  const float s = 0.86602540378443865;
  vec2 a = x[1] + x[2], d = s * over_i(x[1] - x[2]);
  vec2 m = x[0] - 0.5 * a;
  x[0] += a;
  x[1] = m + d;
  x[2] = m - d;
}

void dft5(inout vec2 x[5]) {
  const float c1 = 0.30901699437494742, c2 = -0.80901699437494742;
  const float s1 = 0.95105651629515357, s2 = 0.58778525229247313;
  vec2 a = x[1] + x[4], b = x[2] + x[3];
  vec2 c = over_i(x[1] - x[4]), d = over_i(x[2] - x[3]);
  vec2 m1 = x[0] + c1 * a + c2 * b, m2 = x[0] + c2 * a + c1 * b;
  vec2 d1 = s1 * c + s2 * d, d2 = s2 * c - s1 * d;
  x[0] += a + b;
  x[1] = m1 + d1;
  x[2] = m2 + d2;
  x[3] = m2 - d2;
  x[4] = m1 - d1;
}

void dft7(inout vec2 x[7]) {
  const float c1 = 0.62348980185873353, c2 = -0.22252093395631440;
  const float c3 = -0.90096886790241913;
  const float s1 = 0.78183148246802981, s2 = 0.97492791218182361;
  const float s3 = 0.43388373911755812;
  vec2 a = x[1] + x[6], b = x[2] + x[5], c = x[3] + x[4];
  vec2 d = over_i(x[1] - x[6]), e = over_i(x[2] - x[5]);
  vec2 f = over_i(x[3] - x[4]);
  vec2 m1 = x[0] + c1 * a + c2 * b + c3 * c;
  vec2 m2 = x[0] + c2 * a + c3 * b + c1 * c;
  vec2 m3 = x[0] + c3 * a + c1 * b + c2 * c;
  vec2 d1 = s1 * d + s2 * e + s3 * f;
  vec2 d2 = s2 * d - s3 * e - s1 * f;
  vec2 d3 = s3 * d - s1 * e + s2 * f;
  x[0] += a + b + c;
  x[1] = m1 + d1;
  x[2] = m2 + d2;
  x[3] = m3 + d3;
  x[4] = m3 - d3;
  x[5] = m2 - d2;
  x[6] = m1 - d1;
}

void dft9(inout vec2 x[9]) {
  // exp(-2 pi i k / 9).
  const vec2 w1 = vec2(0.76604444311897804, -0.64278760968653933);
  const vec2 w2 = vec2(0.17364817766693035, -0.98480775301220806);
  const vec2 w4 = vec2(-0.93969262078590838, -0.34202014332566873);
  vec2 y[9];
  [[unroll]] for (uint b = 0; b < 3; ++b) {
    vec2 a[3] = vec2[3](x[b], x[b + 3], x[b + 6]);
    dft3(a);
    [[unroll]] for (uint k = 0; k < 3; ++k) {
      y[3 * k + b] = a[k];
    }
  }
  y[4] = times(y[4], w1);
  y[5] = times(y[5], w2);
  y[7] = times(y[7], w2);
  y[8] = times(y[8], w4);
  [[unroll]] for (uint k = 0; k < 3; ++k) {
    vec2 a[3] = vec2[3](y[3 * k], y[3 * k + 1], y[3 * k + 2]);
    dft3(a);
    [[unroll]] for (uint j = 0; j < 3; ++j) {
      x[k + 3 * j] = a[j];
    }
  }
}

#define HALF_ROOT 0.70710678118654752

void dft8(inout vec2 x[8]) {
  vec2 a[4] = vec2[4](x[0], x[2], x[4], x[6]);
  vec2 b[4] = vec2[4](x[1], x[3], x[5], x[7]);
  dft4(a);
  dft4(b);
  b[1] = HALF_ROOT * vec2(b[1].x + b[1].y, b[1].y - b[1].x);
  b[2] = over_i(b[2]);
  b[3] = HALF_ROOT * vec2(b[3].y - b[3].x, -b[3].x - b[3].y);
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    x[k] = a[k] + b[k];
    x[k + 4] = a[k] - b[k];
  }
}

void dft16(inout vec2 x[16]) {
  // exp(-2 pi i k / 16); products of roots are never needed.
  const vec2 w1 = vec2(0.92387953251128676, -0.38268343236508977);
  const vec2 w3 = vec2(0.38268343236508977, -0.92387953251128676);
  vec2 y[16];
  [[unroll]] for (uint b = 0; b < 4; ++b) {
    vec2 a[4] = vec2[4](x[b], x[b + 4], x[b + 8], x[b + 12]);
    dft4(a);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      y[4 * k + b] = a[k];
    }
  }
  // y[4 k + b] is multiplied by root b k.
  y[5] = times(y[5], w1);
  y[6] = HALF_ROOT * vec2(y[6].x + y[6].y, y[6].y - y[6].x);
  y[7] = times(y[7], w3);
  y[9] = HALF_ROOT * vec2(y[9].x + y[9].y, y[9].y - y[9].x);
  y[10] = over_i(y[10]);
  y[11] = HALF_ROOT * vec2(y[11].y - y[11].x, -y[11].x - y[11].y);
  y[13] = times(y[13], w3);
  y[14] = HALF_ROOT * vec2(y[14].y - y[14].x, -y[14].x - y[14].y);
  y[15] = times(y[15], -w1);
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    vec2 a[4] = vec2[4](y[4 * k], y[4 * k + 1], y[4 * k + 2], y[4 * k + 3]);
    dft4(a);
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      x[k + 4 * j] = a[j];
    }
  }
}
