// run_time(x) hides a constant from the driver's compiler, whose constant
// folding may round differently from the GPU. An unfused graph reads it from
// memory. For kernels of common/elementwise.glsl.
#pragma once

// ZERO is 0, because counts are below 2^63. The compiler may know none of its
// bits: from `count >> 63` NVIDIA's folded cos(1.1), whose last bit is set.
#if DENSE
#define ZERO (0u - uint(A.items.n >> 63))
#else
#define ZERO (0u - uint(A.items.rows >> 63))
#endif
float run_time(float x) {
  return uintBitsToFloat(floatBitsToUint(x) | ZERO);
}
#if FLOAT64
double run_time(double x) {
  return packDouble2x32(unpackDouble2x32(x) | uvec2(ZERO, 0u));
}
#endif
vec2 run_time(vec2 x) {
  return uintBitsToFloat(floatBitsToUint(x) | ZERO);
}
