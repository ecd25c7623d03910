// Type T, f32 or f64: pairs, limits, and scaling by powers of two, so
// that squares neither overflow nor vanish.
#pragma once

#include "common/shuffle.glsl"
#include "common/types.glsl"

// EPSILON: distance from 1 to the next number. NEGLIGIBLE: part of the largest
// item's square; a column shorter than its root, times that item, changes no
// other. LARGE_SQUARE: can be incremented and has a square root.
#if FLOAT64
#define T2 dvec2
#define EPSILON 2.220446049250313e-16lf
#define NEGLIGIBLE 3e-36lf
#define LARGE_SQUARE 1e300lf

// Magnitudes as integers from 1 on, in order; NaN is as 0. Compilers may take
// floats for numbers.
#define KEY uint64_t
uint64_t magnitude(double x) {
  uint64_t bits = packUint2x32(unpackDouble2x32(x)) & 0x7fffffffffffffffUL;
  return (bits > 0x7ff0000000000000UL ? 0 : bits) + 1;
}

// About 2^-e for x in [2^e, 2^(e+1)); 1 for 0 and NaN. Its inverse is normal.
double scale_of(double x) {
  int e = int(unpackDouble2x32(x).y >> 20) - 1023;
  uint bits = uint(clamp(1023 - e, 2, 2044)) << 20;
  return x > 0.0 ? packDouble2x32(uvec2(0u, bits)) : 1.0lf;
}

// 1 / scale_of(x).
double inverse_power(double scale) {
  return packDouble2x32(uvec2(0u, 0x7fe00000u - unpackDouble2x32(scale).y));
}

// x where a < b, else 0, of a and b up to 2^31; by a mask, as a branch could part
// the lanes.
double where_less(double x, uint a, uint b) {
  return packDouble2x32(unpackDouble2x32(x) & uint(int(a - b) >> 31));
}
#else
#define T2 vec2
#define EPSILON 1.1920929e-7
#define NEGLIGIBLE 1e-18
#define LARGE_SQUARE 1e37
#define KEY uint
uint magnitude(float x) {
  uint bits = floatBitsToUint(x) & 0x7fffffff;
  return (bits > 0x7f800000 ? 0 : bits) + 1;
}

float scale_of(float x) {
  int e = int(floatBitsToUint(x) >> 23) - 127;
  return x > 0.0 ? uintBitsToFloat(uint(clamp(127 - e, 2, 252)) << 23) : 1.0;
}
float inverse_power(float scale) {
  return uintBitsToFloat(0x7f000000u - floatBitsToUint(scale));
}

float where_less(float x, uint a, uint b) {
  return uintBitsToFloat(floatBitsToUint(x) & uint(int(a - b) >> 31));
}
#endif
