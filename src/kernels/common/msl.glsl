// Runtime functions of translated Metal kernels (msl/translate.h). Define
// MSL_SUBGROUP and MSL_THREADS first, as in common/msl_simd.glsl, and MSL_SIMD
// for kernels with SIMD-group functions.
#pragma once

#include "common/loops.glsl"
#include "common/msl_math.glsl"
#include "common/types.glsl"

// ---- memory ------------------------------------------------------------------

// Advances `address` by n items of `size` bytes.
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

// Whether x is true for any invocation of the workgroup, all of which must call
// it. Three words are used in turn: the previous one may still be read while
// the next is cleared.
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

// ---- attributes of a thread ------------------------------------------------------

#define ATTRIBUTE_(T, NAME, VALUE)                                            \
  T NAME() { return VALUE; }
#ifdef MSL_SIMD
#include "common/msl_simd.glsl"
ATTRIBUTE_(uint, msl_thread_index_in_simdgroup, msl_lane())
ATTRIBUTE_(uint, msl_simdgroup_index_in_threadgroup, msl_simdgroup())
ATTRIBUTE_(uint, msl_simdgroups_per_threadgroup, (MSL_THREADS + 31u) / 32u)
uint msl_dispatch_simdgroups_per_threadgroup() {
  uvec3 n = A.threads;
  return (n.x * n.y * n.z + 31u) / 32u;
}
ATTRIBUTE_(uint, msl_thread_index_in_quadgroup, msl_lane() & 3u)
ATTRIBUTE_(
    uint, msl_quadgroup_index_in_threadgroup,
    msl_simdgroup() * 8u + (msl_lane() >> 2))
ATTRIBUTE_(uint, msl_quadgroups_per_threadgroup, (MSL_THREADS + 3u) / 4u)
#endif
ATTRIBUTE_(uint, msl_threads_per_simdgroup, 32u)
ATTRIBUTE_(uint, msl_dispatch_threads_per_simdgroup, 32u)
ATTRIBUTE_(uint, msl_thread_execution_width, 32u)

// A grid may be split into dispatches with an offset each; threadgroups at the
// grid's ends are smaller.
ATTRIBUTE_(uvec3, msl_threadgroup_position_in_grid, gl_WorkGroupID + A.base)
ATTRIBUTE_(uvec3, msl_thread_position_in_threadgroup, gl_LocalInvocationID)
ATTRIBUTE_(
    uvec3, msl_thread_position_in_grid,
    (gl_WorkGroupID + A.base) * A.threads + gl_LocalInvocationID)
ATTRIBUTE_(uint, msl_thread_index_in_threadgroup, gl_LocalInvocationIndex)
ATTRIBUTE_(uvec3, msl_threads_per_threadgroup, gl_WorkGroupSize)
ATTRIBUTE_(uvec3, msl_dispatch_threads_per_threadgroup, A.threads)
ATTRIBUTE_(uvec3, msl_threads_per_grid, A.grid)
ATTRIBUTE_(uvec3, msl_grid_size, A.grid)
ATTRIBUTE_(uvec3, msl_grid_origin, uvec3(0u))
ATTRIBUTE_(
    uvec3, msl_threadgroups_per_grid, (A.grid + A.threads - 1u) / A.threads)

// ---- offsets of items ----------------------------------------------------------

// Offset in items for arbitrary strides; shapes are int, strides int64_t.
int64_t msl_elem_to_loc(
    int64_t elem, uint64_t shape, uint64_t strides, int ndim) {
  int64_t at = 0l;
  for (int d = ndim - 1; d >= 0; --d) {
    int64_t n = int64_t(load(Ptr_i32(shape), d));
    at += elem % n * load(Ptr_i64(strides), d);
    elem /= n;
  }
  return at;
}
// The last two dimensions are separate, all others are in z.
int64_t msl_elem_to_loc_3d(
    uvec3 elem, uint64_t shape, uint64_t strides, int ndim) {
  int64_t at = int64_t(elem.x) * load(Ptr_i64(strides), ndim - 1) +
      int64_t(elem.y) * load(Ptr_i64(strides), ndim - 2);
  uint z = elem.z;
  for (int d = ndim - 3; d >= 0; --d) {
    uint n = uint(load(Ptr_i32(shape), d));
    at += int64_t(z % n) * load(Ptr_i64(strides), d);
    z /= n;
  }
  return at;
}
int64_t msl_elem_to_loc_1(uint elem, int64_t stride) {
  return int64_t(elem) * stride;
}
int64_t msl_elem_to_loc_2(uvec2 elem, uint64_t strides) {
  return int64_t(elem.x) * load(Ptr_i64(strides), 1) +
      int64_t(elem.y) * load(Ptr_i64(strides), 0);
}
int64_t msl_elem_to_loc_3(uvec3 elem, uint64_t strides) {
  return int64_t(elem.x) * load(Ptr_i64(strides), 2) +
      int64_t(elem.y) * load(Ptr_i64(strides), 1) +
      int64_t(elem.z) * load(Ptr_i64(strides), 0);
}
