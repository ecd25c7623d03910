// Conversions of e2m1 (fp4), e4m3 (fp8) and e8m0 (power-of-two scales), OCP
// Microscaling Formats 1.0. Round to nearest even; integer arithmetic where a
// driver may flush denormals.
#pragma once

const float E2M1_MAX = 6.0;
const float E4M3_MAX = 448.0;

// The table holds twice the magnitude, one hexadecimal digit per code; -0 stays
// -0.
float e2m1_to_f32(uint code) {
  uint twice = (0xc8643210u >> ((code & 7u) * 4u)) & 15u;
  float v = float(int(twice)) * 0.5;
  return uintBitsToFloat(floatBitsToUint(v) | ((code & 8u) << 28));
}

uint f32_to_e2m1(float x) {
  uint bits = floatBitsToUint(x);
  uint a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) { // NaN
    return 7u;
  }
  float v = uintBitsToFloat(a);
  // Ties go to the even code.
  uint code = v > 5.0 ? 7u
      : v >= 3.5      ? 6u
      : v > 2.5       ? 5u
      : v >= 1.75     ? 4u
      : v > 1.25      ? 3u
      : v >= 0.75     ? 2u
      : v > 0.25      ? 1u
                      : 0u;
  return code | ((bits >> 28) & 8u);
}

float e4m3_to_f32(uint code) {
  uint a = code & 127u;
  // Rebias the exponent by 120; codes below 8 are multiples of 2^-9.
  uint normal = (a << 20) + 0x3c000000u;
  uint tiny = floatBitsToUint(float(int(a)) * 0.001953125);
  uint v = a >= 8u ? normal : tiny;
  v = a == 127u ? 0x7fc00000u : v;
  return uintBitsToFloat(v | ((code & 128u) << 24));
}

// Saturates at 448, for NaN too, as in MLX.
uint f32_to_e4m3(float x) {
  uint bits = floatBitsToUint(x);
  uint sign = (bits >> 24) & 128u;
  uint a = bits & 0x7fffffffu;
  uint code;
  if (a >= 0x43e00000u) { // 448
    code = 0x7eu;
  } else if (a < 0x3c800000u) { // below 2^-6: multiples of 2^-9
    code = uint(int(roundEven(uintBitsToFloat(a) * 512.0)));
  } else {
    code = (a - 0x3c000000u + 0x7ffffu + ((a >> 20) & 1u)) >> 20;
  }
  return code | sign;
}

// 2^(code - 127); code 0 is 2^-127, a denormal, and 255 is infinity.
float e8m0_to_f32(uint code) {
  return uintBitsToFloat(code == 0u ? 0x00400000u : code << 23);
}

// The smallest code whose value is >= x, for x >= 0 (255 for Inf and NaN).
uint f32_to_e8m0_up(float x) {
  uint a = floatBitsToUint(x) & 0x7fffffffu;
  if (a >= 0x7f800000u) {
    return 255u;
  }
  if (a < 0x00800000u) { // denormals: 2^-127 is 0x400000
    return a > 0x00400000u ? 1u : 0u;
  }
  uint code = (a >> 23) + ((a & 0x7fffffu) != 0u ? 1u : 0u);
  return min(code, 254u);
}

// x / 2^(code - 127), in two factors to avoid a denormal factor.
float divide_by_e8m0(float x, uint code) {
  if (code == 255u) {
    return x * 0.0;
  }
  int e = 127 - int(code);
  int h = e / 2;
  return x * uintBitsToFloat(uint(h + 127) << 23) *
      uintBitsToFloat(uint(e - h + 127) << 23);
}
