// Functions derived from msl_simd.glsl, in any of its forms: votes, other
// types, and shuffles by source lane.
#pragma once

bool msl_simd_any(WITH_ACTIVE bool x) {
  return msl_simd_ballot(ACTIVE x) != 0u;
}
bool msl_simd_all(WITH_ACTIVE bool x) {
  return msl_simd_ballot(ACTIVE !x) == 0u;
}
uint msl_simd_active_threads_mask(ONLY_ACTIVE) {
  return msl_simd_ballot(ACTIVE true);
}
bool msl_simd_is_first(ONLY_ACTIVE) {
  return findLSB(msl_simd_ballot(ACTIVE true)) == int(msl_lane());
}
uint msl_quad_ballot(WITH_ACTIVE bool x) {
  return msl_simd_ballot(ACTIVE x) >> (msl_lane() & 28u) & 15u;
}
bool msl_quad_any(WITH_ACTIVE bool x) {
  return msl_quad_ballot(ACTIVE x) != 0u;
}
bool msl_quad_all(WITH_ACTIVE bool x) {
  return msl_quad_ballot(ACTIVE !x) == 0u;
}
uint msl_quad_active_threads_mask(ONLY_ACTIVE) {
  return msl_quad_ballot(ACTIVE true);
}
bool msl_quad_is_first(ONLY_ACTIVE) {
  return findLSB(msl_quad_ballot(ACTIVE true)) == int(msl_lane() & 3u);
}

// Applies a unary function to components, or to values converted to another
// type.
#define SPLIT_2_(F, T, v) T(F(ACTIVE v.x), F(ACTIVE v.y))
#define SPLIT_3_(F, T, v) T(F(ACTIVE v.x), F(ACTIVE v.y), F(ACTIVE v.z))
#define SPLIT_4_(F, T, v)                                                     \
  T(F(ACTIVE v.x), F(ACTIVE v.y), F(ACTIVE v.z), F(ACTIVE v.w))
#define ON_VECTORS_(NAME, VEC)                                                \
  VEC##2 NAME(WITH_ACTIVE VEC##2 x) { return SPLIT_2_(NAME, VEC##2, x); }     \
  VEC##3 NAME(WITH_ACTIVE VEC##3 x) { return SPLIT_3_(NAME, VEC##3, x); }     \
  VEC##4 NAME(WITH_ACTIVE VEC##4 x) { return SPLIT_4_(NAME, VEC##4, x); }
#define THROUGH_(NAME, T, WIDE)                                               \
  T NAME(WITH_ACTIVE T x) { return T(NAME(ACTIVE WIDE(x))); }
#define ON_INTEGERS_(NAME)                                                    \
  ON_VECTORS_(NAME, ivec)                                                     \
  ON_VECTORS_(NAME, uvec)                                                     \
  THROUGH_(NAME, int8_t, int)                                                 \
  THROUGH_(NAME, int16_t, int)                                                \
  THROUGH_(NAME, uint8_t, uint)                                               \
  THROUGH_(NAME, uint16_t, uint)
#define ON_NUMBERS_(NAME) ON_VECTORS_(NAME, vec) ON_INTEGERS_(NAME)
ON_NUMBERS_(msl_simd_sum)
ON_NUMBERS_(msl_simd_product)
ON_NUMBERS_(msl_simd_min)
ON_NUMBERS_(msl_simd_max)
ON_INTEGERS_(msl_simd_and)
ON_INTEGERS_(msl_simd_or)
ON_INTEGERS_(msl_simd_xor)
ON_NUMBERS_(msl_quad_sum)
ON_NUMBERS_(msl_quad_product)
ON_NUMBERS_(msl_quad_min)
ON_NUMBERS_(msl_quad_max)
ON_INTEGERS_(msl_quad_and)
ON_INTEGERS_(msl_quad_or)
ON_INTEGERS_(msl_quad_xor)
ON_NUMBERS_(msl_simd_prefix_exclusive_sum)
ON_NUMBERS_(msl_simd_prefix_inclusive_sum)
ON_NUMBERS_(msl_simd_prefix_exclusive_product)
ON_NUMBERS_(msl_simd_prefix_inclusive_product)
ON_NUMBERS_(msl_quad_prefix_exclusive_sum)
ON_NUMBERS_(msl_quad_prefix_inclusive_sum)
ON_NUMBERS_(msl_quad_prefix_exclusive_product)
ON_NUMBERS_(msl_quad_prefix_inclusive_product)

// Shuffles of other types.
#define LANES_OF_2_(F, T, v, i) T(F(ACTIVE v.x, i), F(ACTIVE v.y, i))
#define LANES_OF_3_(F, T, v, i)                                               \
  T(F(ACTIVE v.x, i), F(ACTIVE v.y, i), F(ACTIVE v.z, i))
#define LANES_OF_4_(F, T, v, i)                                               \
  T(F(ACTIVE v.x, i), F(ACTIVE v.y, i), F(ACTIVE v.z, i), F(ACTIVE v.w, i))
#define MOVE_VECTORS_(NAME, VEC)                                              \
  VEC##2 NAME(WITH_ACTIVE VEC##2 x, uint i) {                                 \
    return LANES_OF_2_(NAME, VEC##2, x, i);                                   \
  }                                                                           \
  VEC##3 NAME(WITH_ACTIVE VEC##3 x, uint i) {                                 \
    return LANES_OF_3_(NAME, VEC##3, x, i);                                   \
  }                                                                           \
  VEC##4 NAME(WITH_ACTIVE VEC##4 x, uint i) {                                 \
    return LANES_OF_4_(NAME, VEC##4, x, i);                                   \
  }
#define MOVE_THROUGH_(NAME, T, WIDE)                                          \
  T NAME(WITH_ACTIVE T x, uint i) { return T(NAME(ACTIVE WIDE(x), i)); }
#define MOVE_OTHERS_(NAME)                                                    \
  MOVE_VECTORS_(NAME, vec)                                                    \
  MOVE_VECTORS_(NAME, ivec)                                                   \
  MOVE_VECTORS_(NAME, uvec)                                                   \
  MOVE_THROUGH_(NAME, bool, uint)                                             \
  MOVE_THROUGH_(NAME, int8_t, int)                                            \
  MOVE_THROUGH_(NAME, int16_t, int)                                           \
  MOVE_THROUGH_(NAME, uint8_t, uint)                                          \
  MOVE_THROUGH_(NAME, uint16_t, uint)                                         \
  uint64_t NAME(WITH_ACTIVE uint64_t x, uint i) {                             \
    uvec2 halves = unpackUint2x32(x);                                         \
    return packUint2x32(LANES_OF_2_(NAME, uvec2, halves, i));                 \
  }                                                                           \
  MOVE_THROUGH_(NAME, int64_t, uint64_t)
MOVE_OTHERS_(msl_simd_shuffle)
MOVE_OTHERS_(msl_quad_shuffle)

// Shuffles by source lane. Lanes that would read beyond the group keep their
// own item, or with `fill` take it from the group's other end; the group then
// has `modulo` lanes.
#define GROUP_MOVES_(T, GROUP, LANE, LANES)                                   \
  T msl_##GROUP##_broadcast(WITH_ACTIVE T x, uint lane) {                     \
    return msl_##GROUP##_shuffle(ACTIVE x, lane);                             \
  }                                                                           \
  T msl_##GROUP##_broadcast_first(WITH_ACTIVE T x) {                          \
    return msl_##GROUP##_shuffle(                                             \
        ACTIVE x, uint(findLSB(msl_##GROUP##_ballot(ACTIVE true))));          \
  }                                                                           \
  T msl_##GROUP##_shuffle_xor(WITH_ACTIVE T x, uint mask) {                   \
    return msl_##GROUP##_shuffle(ACTIVE x, msl_lane() ^ mask);                \
  }                                                                           \
  T msl_##GROUP##_shuffle_up(WITH_ACTIVE T x, uint delta) {                   \
    T y = msl_##GROUP##_shuffle(ACTIVE x, msl_lane() - delta);                \
    return LANE >= delta ? y : x;                                             \
  }                                                                           \
  T msl_##GROUP##_shuffle_down(WITH_ACTIVE T x, uint delta) {                 \
    T y = msl_##GROUP##_shuffle(ACTIVE x, msl_lane() + delta);                \
    return LANE + delta < LANES ? y : x;                                      \
  }                                                                           \
  T msl_##GROUP##_shuffle_rotate_up(WITH_ACTIVE T x, uint delta) {            \
    return msl_##GROUP##_shuffle(ACTIVE x, msl_lane() - delta);               \
  }                                                                           \
  T msl_##GROUP##_shuffle_rotate_down(WITH_ACTIVE T x, uint delta) {          \
    return msl_##GROUP##_shuffle(ACTIVE x, msl_lane() + delta);               \
  }
#define MOVES_(T)                                                             \
  GROUP_MOVES_(T, simd, msl_lane(), 32u)                                      \
  T msl_simd_shuffle_and_fill_up(                                             \
      WITH_ACTIVE T x, T fill, uint delta, uint modulo) {                     \
    uint within = msl_lane() % modulo;                                        \
    uint from = msl_lane() - within + (within + modulo - delta) % modulo;     \
    T y = msl_simd_shuffle(ACTIVE x, from);                                   \
    T z = msl_simd_shuffle(ACTIVE fill, from);                                \
    return within >= delta ? y : z;                                           \
  }                                                                           \
  T msl_simd_shuffle_and_fill_up(WITH_ACTIVE T x, T fill, uint delta) {       \
    return msl_simd_shuffle_and_fill_up(ACTIVE x, fill, delta, 32u);          \
  }                                                                           \
  T msl_simd_shuffle_and_fill_down(                                           \
      WITH_ACTIVE T x, T fill, uint delta, uint modulo) {                     \
    uint within = msl_lane() % modulo;                                        \
    uint from = msl_lane() - within + (within + delta) % modulo;              \
    T y = msl_simd_shuffle(ACTIVE x, from);                                   \
    T z = msl_simd_shuffle(ACTIVE fill, from);                                \
    return within + delta < modulo ? y : z;                                   \
  }                                                                           \
  T msl_simd_shuffle_and_fill_down(WITH_ACTIVE T x, T fill, uint delta) {     \
    return msl_simd_shuffle_and_fill_down(ACTIVE x, fill, delta, 32u);        \
  }                                                                           \
  GROUP_MOVES_(T, quad, (msl_lane() & 3u), 4u)
EACH_WIDTH_(MOVES_, float, vec)
EACH_WIDTH_(MOVES_, int, ivec)
EACH_WIDTH_(MOVES_, uint, uvec)
MOVES_(bool)
MOVES_(int8_t)
MOVES_(int16_t)
MOVES_(uint8_t)
MOVES_(uint16_t)
MOVES_(int64_t)
MOVES_(uint64_t)
