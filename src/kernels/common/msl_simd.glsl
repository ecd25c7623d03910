// SIMD-groups of 32 and quad-groups of 4 threads of the Metal Shading Language
// (6.9.2, 6.9.3). Define MSL_SUBGROUP, the guaranteed minimum subgroup size
// (ops/custom/plan.h), and MSL_THREADS, the threadgroup size, first. There are
// three forms, by MSL_SUBGROUP:
//   32: a SIMD-group is a subgroup.
//   more: a SIMD-group is one of several 32s of a subgroup.
//   less: emulated in shared memory. Every function then takes a first
//     argument, whether the invocation is active; all invocations of the
//     workgroup call it in uniform control flow, and inactive ones contribute a
//     neutral value. Any lane assignment works. Loops are unrolled, because
//     llvmpipe limits iterations.
// Functions take float, int and uint here, other types in msl_simd_types.glsl.
#pragma once

#include "common/numeric.glsl"

#define MSL_EMULATED (MSL_SUBGROUP < 32)

#if MSL_EMULATED
#define WITH_ACTIVE bool on,
#define ONLY_ACTIVE bool on
#define ACTIVE on,
#define ACTIVE_ALONE on
#define msl_lane() (gl_LocalInvocationIndex & 31u)
#define msl_simdgroup() (gl_LocalInvocationIndex >> 5)
#else
#define WITH_ACTIVE
#define ONLY_ACTIVE
#define ACTIVE
#define ACTIVE_ALONE
#define msl_lane() (gl_SubgroupInvocationID & 31u)
#if MSL_SUBGROUP == 32
#define msl_simdgroup() gl_SubgroupID
#else
#define msl_simdgroup() (gl_LocalInvocationIndex >> 5)
#endif
#endif

float msl_op_sum(float a, float b) { return a + b; }
int msl_op_sum(int a, int b) { return a + b; }
uint msl_op_sum(uint a, uint b) { return a + b; }
float msl_op_product(float a, float b) { return a * b; }
int msl_op_product(int a, int b) { return a * b; }
uint msl_op_product(uint a, uint b) { return a * b; }
// NaN only if both operands are NaN.
float msl_op_min(float a, float b) { return is_nan(a) || b < a ? b : a; }
int msl_op_min(int a, int b) { return min(a, b); }
uint msl_op_min(uint a, uint b) { return min(a, b); }
float msl_op_max(float a, float b) { return is_nan(a) || b > a ? b : a; }
int msl_op_max(int a, int b) { return max(a, b); }
uint msl_op_max(uint a, uint b) { return max(a, b); }
int msl_op_and(int a, int b) { return a & b; }
uint msl_op_and(uint a, uint b) { return a & b; }
int msl_op_or(int a, int b) { return a | b; }
uint msl_op_or(uint a, uint b) { return a | b; }
int msl_op_xor(int a, int b) { return a ^ b; }
uint msl_op_xor(uint a, uint b) { return a ^ b; }

uint msl_word(float x) { return floatBitsToUint(x); }
uint msl_word(int x) { return uint(x); }
uint msl_word(uint x) { return x; }
float msl_from_word(uint w, float type) { return uintBitsToFloat(w); }
int msl_from_word(uint w, int type) { return int(w); }
uint msl_from_word(uint w, uint type) { return w; }

// F(function, type, neutral element, GLSL's function)
#define EACH_SCAN_(F)                                                         \
  F(sum, float, 0.0, Add)                                                     \
  F(sum, int, 0, Add)                                                         \
  F(sum, uint, 0u, Add)                                                       \
  F(product, float, 1.0, Mul)                                                 \
  F(product, int, 1, Mul)                                                     \
  F(product, uint, 1u, Mul)
#define EACH_REDUCTION_(F)                                                    \
  EACH_SCAN_(F)                                                               \
  F(min, float, MOST_, Min)                                                   \
  F(min, int, 0x7fffffff, Min)                                                \
  F(min, uint, 0xffffffffu, Min)                                              \
  F(max, float, LEAST_, Max)                                                  \
  F(max, int, int(0x80000000u), Max)                                          \
  F(max, uint, 0u, Max)                                                       \
  F(and, int, -1, And)                                                        \
  F(and, uint, 0xffffffffu, And)                                              \
  F(or, int, 0, Or)                                                           \
  F(or, uint, 0u, Or)                                                         \
  F(xor, int, 0, Xor)                                                         \
  F(xor, uint, 0u, Xor)
#define TIMES_4_(F, N) F(N, 0u) F(N, 1u) F(N, 2u) F(N, 3u)
#define TIMES_8_(F, N) TIMES_4_(F, N) F(N, 4u) F(N, 5u) F(N, 6u) F(N, 7u)

// ---- the three forms --------------------------------------------------------

#if MSL_EMULATED

// msl_op_min and msl_op_max ignore NaN.
#define MOST_ NAN_F
#define LEAST_ NAN_F

// A function writes the first array, then possibly the second. Both are free
// for the next function: its first barrier protects the second array, which is
// read last.
shared uint msl_first_[MSL_THREADS];
shared uint msl_second_[MSL_THREADS];

// Pairwise in twos, fours, eights and so on, as on Apple's GPUs: sums have the
// same bits as an explicit simd_shuffle_xor by 1, 2, 4, 8, 16.
#define OF_LANE_(ARRAY, k)                                                    \
  (at + k < MSL_THREADS ? msl_from_word(ARRAY[at + k], neutral) : neutral)
#define PAIR_(NAME, ARRAY, j, k)                                              \
  msl_op_##NAME(OF_LANE_(ARRAY, j), OF_LANE_(ARRAY, k))
#define FOUR_(NAME, ARRAY, j, k, l, m)                                        \
  msl_op_##NAME(PAIR_(NAME, ARRAY, j, k), PAIR_(NAME, ARRAY, l, m))
#define REDUCTION_(NAME, T, NEUTRAL, GLSL)                                    \
  T msl_simd_##NAME(bool on, T x) {                                           \
    T neutral = NEUTRAL;                                                      \
    msl_first_[gl_LocalInvocationIndex] = msl_word(on ? x : neutral);         \
    barrier();                                                                \
    uint at = gl_LocalInvocationIndex & ~7u;                                  \
    T low = FOUR_(NAME, msl_first_, 0u, 1u, 2u, 3u);                          \
    T high = FOUR_(NAME, msl_first_, 4u, 5u, 6u, 7u);                         \
    msl_second_[gl_LocalInvocationIndex] =                                    \
        msl_word(msl_op_##NAME(low, high));                                   \
    barrier();                                                                \
    at = gl_LocalInvocationIndex & ~31u;                                      \
    return FOUR_(NAME, msl_second_, 0u, 8u, 16u, 24u);                        \
  }                                                                           \
  T msl_quad_##NAME(bool on, T x) {                                           \
    T neutral = NEUTRAL;                                                      \
    barrier();                                                                \
    msl_second_[gl_LocalInvocationIndex] = msl_word(on ? x : neutral);        \
    barrier();                                                                \
    uint at = gl_LocalInvocationIndex & ~3u;                                  \
    return FOUR_(NAME, msl_second_, 0u, 1u, 2u, 3u);                          \
  }

// Scans within eight lanes, then adds the totals of the preceding eights.
#define EIGHT_(NAME, k)                                                       \
  at = eight + k;                                                             \
  y = at < MSL_THREADS ? msl_from_word(msl_first_[at], y) : neutral;          \
  all = msl_op_##NAME(all, y);                                                \
  r = at < gl_LocalInvocationIndex ? msl_op_##NAME(r, y) : r;
#define BEFORE_(NAME, k)                                                      \
  before = base + 8u * k < eight                                              \
      ? msl_op_##NAME(before, msl_from_word(msl_second_[base + 8u * k], y))   \
      : before;
#define QUAD_BEFORE_(NAME, k)                                                 \
  at = base + k;                                                              \
  r = at < gl_LocalInvocationIndex                                            \
      ? msl_op_##NAME(r, msl_from_word(msl_second_[at], r))                   \
      : r;
#define SCAN_(NAME, T, NEUTRAL, GLSL)                                         \
  T msl_simd_prefix_exclusive_##NAME(bool on, T x) {                      \
    T neutral = NEUTRAL;                                                      \
    uint base = gl_LocalInvocationIndex & ~31u;                               \
    uint eight = gl_LocalInvocationIndex & ~7u;                               \
    msl_first_[gl_LocalInvocationIndex] = msl_word(on ? x : neutral);     \
    barrier();                                                                \
    T r = neutral;                                                            \
    T all = neutral;                                                          \
    T y = neutral;                                                            \
    uint at;                                                                  \
    TIMES_8_(EIGHT_, NAME)                                                    \
    msl_second_[gl_LocalInvocationIndex] = msl_word(all);                     \
    barrier();                                                                \
    T before = neutral;                                                       \
    TIMES_4_(BEFORE_, NAME)                                                   \
    return msl_op_##NAME(before, r);                                          \
  }                                                                           \
  T msl_quad_prefix_exclusive_##NAME(bool on, T x) {                      \
    uint base = gl_LocalInvocationIndex & ~3u;                                \
    barrier();                                                                \
    msl_second_[gl_LocalInvocationIndex] = msl_word(on ? x : NEUTRAL);    \
    barrier();                                                                \
    T r = NEUTRAL;                                                            \
    uint at;                                                                  \
    TIMES_4_(QUAD_BEFORE_, NAME)                                              \
    return r;                                                                 \
  }                                                                           \
  T msl_simd_prefix_inclusive_##NAME(bool on, T x) {                      \
    return msl_op_##NAME(msl_simd_prefix_exclusive_##NAME(on, x), x);     \
  }                                                                           \
  T msl_quad_prefix_inclusive_##NAME(bool on, T x) {                      \
    return msl_op_##NAME(msl_quad_prefix_exclusive_##NAME(on, x), x);     \
  }

// A shuffle from a lane that does not exist is undefined.
#define SHUFFLE_(T)                                                           \
  T msl_from_lane_(T x, uint at) {                                            \
    barrier();                                                                \
    msl_second_[gl_LocalInvocationIndex] = msl_word(x);                       \
    barrier();                                                                \
    return msl_from_word(msl_second_[min(at, MSL_THREADS - 1u)], x);          \
  }                                                                           \
  T msl_simd_shuffle(bool on, T x, uint lane) {                           \
    return msl_from_lane_(                                                    \
        x, (gl_LocalInvocationIndex & ~31u) + (lane & 31u));                  \
  }                                                                           \
  T msl_quad_shuffle(bool on, T x, uint lane) {                           \
    return msl_from_lane_(x, (gl_LocalInvocationIndex & ~3u) + (lane & 3u));  \
  }

EACH_REDUCTION_(REDUCTION_)
uint msl_simd_ballot(bool on, bool x) {
  return msl_simd_or(on, x ? 1u << msl_lane() : 0u);
}

#else

#define MOST_ INF_F
#define LEAST_ (-INF_F)

// A subgroup contains its SIMD-groups in consecutive 32s of lanes.
#if MSL_SUBGROUP == 32
#define GROUPED_(T, r, x, NEUTRAL, FUNCTION) T r = FUNCTION(x);
uint msl_simd_ballot(bool x) {
  return subgroupBallot(x).x;
}
#else
#define GROUPED_(T, r, x, NEUTRAL, FUNCTION)                                  \
  uint part = gl_SubgroupInvocationID >> 5;                                   \
  T r = x;                                                                    \
  for (uint p = 0; p < gl_SubgroupSize >> 5; ++p) {                           \
    T y = FUNCTION(part == p ? x : NEUTRAL);                                  \
    r = part == p ? y : r;                                                    \
  }
uint msl_simd_ballot(bool x) {
  uvec4 lanes = subgroupBallot(x);
  uint part = gl_SubgroupInvocationID >> 5;
  return part == 0u ? lanes.x
      : part == 1u  ? lanes.y
      : part == 2u  ? lanes.z
                    : lanes.w;
}
#endif

#define IN_QUAD_(NAME, k)                                                     \
  y = subgroupShuffle(x, (gl_SubgroupInvocationID & ~3u) + k);                \
  r = (lanes >> k & 1u) != 0u ? msl_op_##NAME(r, y) : r;
#define REDUCTION_(NAME, T, NEUTRAL, GLSL)                                    \
  T msl_simd_##NAME(T x) {                                                    \
    GROUPED_(T, r, x, NEUTRAL, subgroup##GLSL)                                \
    return r;                                                                 \
  }                                                                           \
  T msl_quad_##NAME(T x) {                                                    \
    uint lanes = msl_simd_ballot(true) >> (msl_lane() & ~3u);                 \
    T r = NEUTRAL;                                                            \
    T y;                                                                      \
    TIMES_4_(IN_QUAD_, NAME)                                                  \
    return r;                                                                 \
  }
#define SCAN_(NAME, T, NEUTRAL, GLSL)                                         \
  T msl_simd_prefix_exclusive_##NAME(T x) {                                   \
    GROUPED_(T, r, x, NEUTRAL, subgroupExclusive##GLSL)                       \
    return r;                                                                 \
  }                                                                           \
  T msl_simd_prefix_inclusive_##NAME(T x) {                                   \
    GROUPED_(T, r, x, NEUTRAL, subgroupInclusive##GLSL)                       \
    return r;                                                                 \
  }                                                                           \
  T msl_quad_prefix_exclusive_##NAME(T x) {                                   \
    uint lanes = msl_simd_ballot(true) >> (msl_lane() & ~3u);                 \
    lanes &= (1u << (msl_lane() & 3u)) - 1u;                                  \
    T r = NEUTRAL;                                                            \
    T y;                                                                      \
    TIMES_4_(IN_QUAD_, NAME)                                                  \
    return r;                                                                 \
  }                                                                           \
  T msl_quad_prefix_inclusive_##NAME(T x) {                                   \
    return msl_op_##NAME(msl_quad_prefix_exclusive_##NAME(x), x);             \
  }
#define SHUFFLE_(T)                                                           \
  T msl_simd_shuffle(T x, uint lane) {                                        \
    return subgroupShuffle(                                                   \
        x, (gl_SubgroupInvocationID & ~31u) + (lane & 31u));                  \
  }                                                                           \
  T msl_quad_shuffle(T x, uint lane) {                                        \
    return subgroupShuffle(x, (gl_SubgroupInvocationID & ~3u) + (lane & 3u)); \
  }

EACH_REDUCTION_(REDUCTION_)
#endif

EACH_SCAN_(SCAN_)
SHUFFLE_(float)
SHUFFLE_(int)
SHUFFLE_(uint)

#include "common/msl_simd_types.glsl"
