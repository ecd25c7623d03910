// run_time(x): a constant as a value of run time, as it is in an unfused graph:
// where a driver computes with constants itself, it may round otherwise than
// its GPU does. For kernels of common/elementwise.glsl.
#ifndef RUN_TIME_GLSL
#define RUN_TIME_GLSL

// Counts are below 2^63. No single bit of ZERO may be known: as `count >> 63` it
// let NVIDIA's compiler fold cos(1.1), whose last bit is set.
#if DENSE
#define ZERO (0u - uint(A.items.n >> 63))
#else
#define ZERO (0u - uint(A.items.rows >> 63))
#endif
float run_time(float x) {
  return uintBitsToFloat(floatBitsToUint(x) | ZERO);
}
vec2 run_time(vec2 x) {
  return uintBitsToFloat(floatBitsToUint(x) | ZERO);
}

#endif
