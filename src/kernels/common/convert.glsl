// Conversions between 16-bit floats and float. Integer arithmetic is used
// unless the driver's conversion rounds to nearest even; the host defines
// NATIVE_F16 after a known-answer probe.
#pragma once

// bfloat16 is the upper half of a float, rounded to nearest even; NaN stays NaN
// and becomes quiet.
float bf16_to_f32(uint16_t x) {
  return uintBitsToFloat(uint(x) << 16);
}
// Rounding values that are not NaN takes half the instructions. A kernel with
// NUMBERS_FIRST may set `numbers_only` while it computes results. If
// numbers_seen is NaN afterwards (a rounded value was NaN, or infinities of
// both signs occurred), the results are invalid and must be recomputed.
#if NUMBERS_FIRST
bool numbers_only = false;
float numbers_seen = 0.0;
#endif
uint numbers_to_upper_bf16(uint x) {
  return x + 0x7fffu + ((x >> 16) & 1u);
}
uvec4 numbers_to_upper_bf16(uvec4 x) {
  return x + 0x7fffu + ((x >> 16) & 1u);
}
// f32_to_bf16() in the upper half of a word; the lower half is undefined.
uint f32_to_upper_bf16(float f) {
  uint x = floatBitsToUint(f);
#if NUMBERS_FIRST
  if (numbers_only) {
    precise float sum = numbers_seen + f;
    numbers_seen = sum;
    return numbers_to_upper_bf16(x);
  }
#endif
  bool nan = (x & 0x7fffffffu) > 0x7f800000u;
  return nan ? x | 0x400000u : numbers_to_upper_bf16(x);
}
uint16_t f32_to_bf16(float f) {
  return uint16_t(f32_to_upper_bf16(f) >> 16);
}
// Rounds four values, with one test for NaN.
uvec4 f32_to_upper_bf16(vec4 v) {
  uvec4 x = floatBitsToUint(v);
  uvec4 y = numbers_to_upper_bf16(x);
  precise float sum = (v.x + v.y) + (v.z + v.w);
#if NUMBERS_FIRST
  if (numbers_only) {
    precise float more = numbers_seen + sum;
    numbers_seen = more;
    return y;
  }
#endif
  if ((floatBitsToUint(sum) & 0x7fffffffu) > 0x7f800000u) {
    y = uvec4(
        f32_to_upper_bf16(v.x),
        f32_to_upper_bf16(v.y),
        f32_to_upper_bf16(v.z),
        f32_to_upper_bf16(v.w));
  }
  return y;
}
// The packed bits, or the rounded values as floats, by fewer instructions than
// through 16-bit items.
uvec2 pack4_bf16(vec4 v) {
  uvec4 y = f32_to_upper_bf16(v);
  return (y.xz >> 16) | (y.yw & 0xffff0000u);
}
vec4 round_to_bf16(vec4 v) {
  return uintBitsToFloat(f32_to_upper_bf16(v) & 0xffff0000u);
}
uint pack2_bf16(float a, float b) {
  return (f32_to_upper_bf16(a) >> 16) | (f32_to_upper_bf16(b) & 0xffff0000u);
}
float round_to_bf16(float f) {
  return uintBitsToFloat(f32_to_upper_bf16(f) & 0xffff0000u);
}

#ifdef NATIVE_F16
float f16_to_f32(uint16_t x) {
  return float(uint16BitsToHalf(x));
}
uint16_t f32_to_f16(float f) {
  return halfBitsToUint16(float16_t(f));
}
#else
// IEEE 754 binary16, including subnormals.
float f16_to_f32(uint16_t h) {
  uint x = uint(h);
  uint sign = (x & 0x8000u) << 16;
  uint body = x & 0x7fffu;
  // Normal numbers: rebias the exponent by 112; Inf and NaN: by 112 more.
  uint bits = (body << 13) + 0x38000000u;
  bits = body >= 0x7c00u ? bits + 0x38000000u : bits;
  // Subnormals: exact as an integer times 2^-24.
  float tiny = float(body) * 5.9604644775390625e-8;
  float v = body < 0x400u ? tiny : uintBitsToFloat(bits);
  return uintBitsToFloat(floatBitsToUint(v) | sign);
}
uint16_t f32_to_f16(float f) {
  uint x = floatBitsToUint(f);
  uint sign = (x >> 16) & 0x8000u;
  uint a = x & 0x7fffffffu;
  uint r;
  if (a > 0x7f800000u) {
    r = 0x7e00u | ((a >> 13) & 0x3ffu);
  } else if (a >= 0x477ff000u) { // rounds beyond 65504
    r = 0x7c00u;
  } else if (a >= 0x38800000u) {
    r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  } else if (a >= 0x33000000u) { // subnormal result
    uint shift = 126u - (a >> 23);
    uint m = (a & 0x7fffffu) | 0x800000u;
    uint half_ulp = (1u << (shift - 1u)) - 1u;
    r = (m + half_ulp + ((m >> shift) & 1u)) >> shift;
  } else {
    r = 0u;
  }
  return uint16_t(sign | r);
}
#endif

// Rounds between fused operations, because MLX computes each in its dtype. Some
// drivers elide the two conversions (llvmpipe of Mesa 26.1; NVIDIA 580 after
// some products); NATIVE_F16_ROUNDING is defined for others.
float round_bf16(float f) {
  return bf16_to_f32(f32_to_bf16(f));
}
#ifdef NATIVE_F16_ROUNDING
float round_f16(float f) {
  return f16_to_f32(f32_to_f16(f));
}
#else
float round_f16(float f) {
  uint x = floatBitsToUint(f);
  uint a = x & 0x7fffffffu;
  uint normal = (a + 0xfffu + ((a >> 13) & 1u)) & 0xffffe000u;
  // Subnormals are multiples of 2^-24, as floats from 0.5 to 1 are.
  precise float sum = uintBitsToFloat(a) + 0.5;
  precise float small = sum - 0.5;
  uint r = a < 0x38800000u ? floatBitsToUint(small) // 2^-14
      : a > 0x7f800000u    ? a | 0x400000u
                           : min(normal, 0x7f800000u);
  r = r >= 0x47800000u && a <= 0x7f800000u ? 0x7f800000u : r; // 65536
  return uintBitsToFloat(r | (x & 0x80000000u));
}
#endif
