// Teams: LANES consecutive invocations of a workgroup that work on one row.
//
// Define WG_SIZE (a multiple of 128, so that every subgroup is full) and LANES
// (a power of two up to WG_SIZE) before including. TEAM_REDUCE declares a
// function that leaves the team's result in each of its invocations; call it
// in uniform control flow only: where teams are wider than subgroups it holds
// barriers. The trailing one lets the caller reduce again at once.
#ifndef LANES_GLSL
#define LANES_GLSL

#define TEAMS (WG_SIZE / LANES)
#define LANE (gl_LocalInvocationIndex % LANES)
#define TEAM (gl_LocalInvocationIndex / LANES)

float shuffle_xor(float x, uint mask) {
  return subgroupShuffleXor(x, mask);
}
vec2 shuffle_xor(vec2 x, uint mask) {
  return subgroupShuffleXor(x, mask);
}
uint shuffle_xor(uint x, uint mask) {
  return subgroupShuffleXor(x, mask);
}
int shuffle_xor(int x, uint mask) {
  return subgroupShuffleXor(x, mask);
}
// 64-bit shuffles are an optional feature: move the halves.
uint64_t shuffle_xor(uint64_t x, uint mask) {
  return packUint2x32(subgroupShuffleXor(unpackUint2x32(x), mask));
}
int64_t shuffle_xor(int64_t x, uint mask) {
  return int64_t(shuffle_xor(uint64_t(x), mask));
}

// x of the invocation `reach` before this one, which is `lane` of its subgroup;
// anything for the first ones.
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

// OP must be associative and commutative. Subgroups are at least 4 wide.
#define TEAM_REDUCE(NAME, VALUE, OP, SCRATCH)                                 \
  TEAM_REDUCE_OF(LANES, NAME, VALUE, OP, SCRATCH)
// Of MEMBERS consecutive invocations.
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

#endif
