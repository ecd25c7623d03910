// Teams: LANES consecutive invocations of a workgroup that work on one row.
//
// Before including, define LANES, a power of two; also WG_SIZE, unless it is the
// least multiple of both LANES and 128 (every subgroup must be full).
// TEAM_REDUCE declares a function that returns the team's result to each of its
// invocations. Call it in uniform control flow only: teams wider than a subgroup
// need barriers. The trailing barrier allows another reduction at once.
#pragma once

#ifdef WG_SIZE
#elif LANES <= 128
#define WG_SIZE 128
#else
#define WG_SIZE LANES
#endif
#define TEAMS (WG_SIZE / LANES)
#define LANE (gl_LocalInvocationIndex % LANES)
#define TEAM (gl_LocalInvocationIndex / LANES)

#define SHUFFLE_XOR_(VALUE)                                                   \
  VALUE shuffle_xor(VALUE x, uint mask) { return subgroupShuffleXor(x, mask); }
SHUFFLE_XOR_(float)
SHUFFLE_XOR_(vec2)
SHUFFLE_XOR_(uint)
SHUFFLE_XOR_(int)
// 64-bit shuffles are an optional feature, so the halves are shuffled.
uint64_t shuffle_xor(uint64_t x, uint mask) {
  return packUint2x32(subgroupShuffleXor(unpackUint2x32(x), mask));
}
int64_t shuffle_xor(int64_t x, uint mask) {
  return int64_t(shuffle_xor(uint64_t(x), mask));
}

#if FLOAT64
double shuffle_xor(double x, uint mask) {
  return packDouble2x32(subgroupShuffleXor(unpackDouble2x32(x), mask));
}
double shuffle_up(double x, uint lane, uint reach) {
  return packDouble2x32(subgroupShuffle(
      unpackDouble2x32(x), lane < reach ? lane : lane - reach));
}
#endif

// x of the invocation `reach` places before this one, which is lane `lane` of
// its subgroup; the first `reach` lanes get their own x.
#define SHUFFLE_UP_(VALUE)                                                    \
  VALUE shuffle_up(VALUE x, uint lane, uint reach) {                          \
    return subgroupShuffle(x, lane < reach ? lane : lane - reach);            \
  }
#define SHUFFLE_UP_64_(VALUE)                                                 \
  VALUE shuffle_up(VALUE x, uint lane, uint reach) {                          \
    return VALUE(packUint2x32(subgroupShuffle(                                \
        unpackUint2x32(uint64_t(x)), lane < reach ? lane : lane - reach)));   \
  }
SHUFFLE_UP_(float)
SHUFFLE_UP_(vec2)
SHUFFLE_UP_(uint)
SHUFFLE_UP_(int)
SHUFFLE_UP_64_(uint64_t)
SHUFFLE_UP_64_(int64_t)

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
