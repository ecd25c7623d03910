// Teams: LANES consecutive invocations of a workgroup that work on one row.
//
// Before including, define LANES, a power of two; also WG_SIZE, unless it is the
// least multiple of both LANES and 128 (every subgroup must be full).
// TEAM_REDUCE declares a function that returns the team's result to each of its
// invocations. Call it in uniform control flow only: teams wider than a subgroup
// need barriers. The trailing barrier allows another reduction at once.
#pragma once

#include "common/shuffle.glsl"

#ifdef WG_SIZE
#elif LANES <= 128
#define WG_SIZE 128
#else
#define WG_SIZE LANES
#endif
#define TEAMS (WG_SIZE / LANES)
#define LANE (gl_LocalInvocationIndex % LANES)
#define TEAM (gl_LocalInvocationIndex / LANES)

// OP must be associative and commutative. Subgroups have at least 4 lanes.
#define TEAM_REDUCE(NAME, VALUE, OP, SCRATCH)                                 \
  TEAM_REDUCE_OF(LANES, NAME, VALUE, OP, SCRATCH)
// Reduces over MEMBERS consecutive invocations.
#define TEAM_REDUCE_OF(MEMBERS, NAME, VALUE, OP, SCRATCH)                     \
  shared VALUE SCRATCH[WG_SIZE / 4];                                          \
  VALUE NAME(VALUE x) {                                                       \
    uint width = min(uint(MEMBERS), gl_SubgroupSize);                         \
    for (uint mask = width >> 1; mask > 0; mask >>= 1) {                      \
      x = OP(x, shuffle_xor(x, mask));                                        \
    }                                                                         \
    if (MEMBERS > gl_SubgroupSize) {                                          \
      if (gl_LocalInvocationIndex % gl_SubgroupSize == 0) {                   \
        SCRATCH[gl_LocalInvocationIndex / gl_SubgroupSize] = x;               \
      }                                                                       \
      barrier();                                                              \
      uint parts = MEMBERS / gl_SubgroupSize;                                 \
      uint first = gl_LocalInvocationIndex / MEMBERS * parts;                 \
      x = SCRATCH[first];                                                     \
      for (uint part = 1; part < parts; ++part) {                             \
        x = OP(x, SCRATCH[first + part]);                                     \
      }                                                                       \
      barrier();                                                              \
    }                                                                         \
    return x;                                                                 \
  }

float lane_add(float a, float b) {
  return a + b;
}
vec2 lane_add2(vec2 a, vec2 b) {
  return a + b;
}
float lane_max(float a, float b) {
  return a > b ? a : b;
}
