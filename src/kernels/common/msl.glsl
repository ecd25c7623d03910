// What translated Metal kernels call (msl/translate.h). Before, MSL_SUBGROUP and
// MSL_THREADS are as common/msl_simd.glsl says; MSL_SIMD is defined for kernels
// with SIMD-group functions.
#ifndef MSL_GLSL
#define MSL_GLSL

#include "common/math.glsl"
#include "common/types.glsl"

// ---- memory ------------------------------------------------------------------

// `address` moved by n items of `size` bytes.
uint64_t msl_move(uint64_t address, int n, int size) {
  return address + uint64_t(int64_t(n) * int64_t(size));
}
uint64_t msl_move(uint64_t address, uint n, int size) {
  return address + uint64_t(n) * uint64_t(size);
}
uint64_t msl_move(uint64_t address, int64_t n, int size) {
  return address + uint64_t(n * int64_t(size));
}
uint64_t msl_move(uint64_t address, uint64_t n, int size) {
  return address + n * uint64_t(size);
}

// ---- half and bfloat -----------------------------------------------------------

#define ROUND_(T16)                                                           \
  float msl_round_##T16(float x) { return round_##T16(x); }                   \
  vec2 msl_round_##T16(vec2 x) {                                              \
    return vec2(round_##T16(x.x), round_##T16(x.y));                          \
  }                                                                           \
  vec3 msl_round_##T16(vec3 x) {                                              \
    return vec3(round_##T16(x.x), round_##T16(x.y), round_##T16(x.z));        \
  }                                                                           \
  vec4 msl_round_##T16(vec4 x) {                                              \
    return vec4(msl_round_##T16(x.xy), msl_round_##T16(x.zw));                \
  }
ROUND_(f16)
ROUND_(bf16)

// ---- control -------------------------------------------------------------------

// Whether x is true for any invocation of the workgroup; all call it. The word is
// one of three in turn: the last one may still be read, the next is cleared.
#if MSL_SUBGROUP < 32
shared uint msl_any_[3];
uint msl_any_turn_ = 0u;
bool msl_any_in_threadgroup(bool x) {
  if (msl_any_turn_ == 0u) {
    if (gl_LocalInvocationIndex == 0u) {
      msl_any_[0] = 0u;
    }
    barrier();
  }
  uint turn = msl_any_turn_ % 3u;
  msl_any_turn_ = turn + 1u;
  if (gl_LocalInvocationIndex == 0u) {
    msl_any_[turn == 2u ? 0u : turn + 1u] = 0u;
  }
  if (x) {
    msl_any_[turn] = 1u;
  }
  barrier();
  return msl_any_[turn] != 0u;
}
#endif

#ifdef MSL_SIMD
#include "common/msl_simd.glsl"
#endif

#endif
