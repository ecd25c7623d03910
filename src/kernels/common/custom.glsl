// Environment of a vulkan_kernel's source besides common/types.glsl
// (docs/custom-kernels.md): thread positions under their MSL names,
// item_location() for strided inputs, and atomics. Include after
// KernelArguments and the workgroup size (ops/custom/plan.cpp).
#pragma once

#define ARGS_BLOCK KernelArguments
#include "common/argument_block.glsl"

// A grid may be split into dispatches with an offset each; workgroups at the
// grid's ends are smaller.
#define threadgroup_position_in_grid (gl_WorkGroupID + ARGUMENTS.base)
#define thread_position_in_threadgroup gl_LocalInvocationID
#define thread_index_in_threadgroup gl_LocalInvocationIndex
#define thread_position_in_grid                                               \
  (threadgroup_position_in_grid * ARGUMENTS.threads + gl_LocalInvocationID)
#define threads_per_grid ARGUMENTS.grid
#define threads_per_threadgroup gl_WorkGroupSize
#define dispatch_threads_per_threadgroup ARGUMENTS.threads
#define threadgroups_per_grid                                                 \
  ((ARGUMENTS.grid + ARGUMENTS.threads - 1u) / ARGUMENTS.threads)

// Offset of item i in row-major order for an array of this layout.
int64_t item_location(uint64_t i, Ptr_i32 shape, Ptr_i64 strides, int ndim) {
  int64_t at = 0l;
  for (int d = ndim - 1; d >= 0; --d) {
    uint64_t n = uint64_t(load(shape, d));
    at += int64_t(i % n) * load(strides, d);
    i /= n;
  }
  return at;
}

#include "common/memory_atomics.glsl"

// atomic_add(y, i, v) and similar return the previous value. TYPE_ is read only
// to select the overload; the value is unused.
#define atomic_add(p, i, x) msl_atomic_add(ITEM_(p, i), TYPE_(p), x)
#define atomic_min(p, i, x) msl_atomic_min(ITEM_(p, i), TYPE_(p), x)
#define atomic_max(p, i, x) msl_atomic_max(ITEM_(p, i), TYPE_(p), x)
#define atomic_and(p, i, x) msl_atomic_and(ITEM_(p, i), TYPE_(p), x)
#define atomic_or(p, i, x) msl_atomic_or(ITEM_(p, i), TYPE_(p), x)
#define atomic_xor(p, i, x) msl_atomic_xor(ITEM_(p, i), TYPE_(p), x)
#define atomic_exchange(p, i, x) msl_atomic_exchange(ITEM_(p, i), TYPE_(p), x)
#define ITEM_(p, i) uint64_t((p) + item_index(i))
#define TYPE_(p) (p).v[0]
