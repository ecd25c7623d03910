// Reductions over a workgroup, for any subgroup size.
//
// Define WG_SIZE (the workgroup's invocations, one-dimensional) before
// including. Each helper is for uniform control flow only: it holds barriers.
// The trailing barrier lets the caller reuse the scratch at once.
#ifndef SUBGROUP_GLSL
#define SUBGROUP_GLSL

// Subgroups are at least 4 wide on every device we accept (checked by caps).
shared float wg_scratch_[WG_SIZE / 4 + 1];

#define WG_REDUCE(NAME, SUBGROUP_OP, OP, IDENTITY)                            \
  float NAME(float x) {                                                       \
    x = SUBGROUP_OP(x);                                                       \
    if (gl_NumSubgroups == 1) {                                               \
      return x;                                                               \
    }                                                                         \
    if (subgroupElect()) {                                                    \
      wg_scratch_[gl_SubgroupID] = x;                                         \
    }                                                                         \
    barrier();                                                                \
    float r = IDENTITY;                                                       \
    for (uint s = 0; s < gl_NumSubgroups; ++s) {                              \
      r = OP(r, wg_scratch_[s]);                                              \
    }                                                                         \
    barrier();                                                                \
    return r;                                                                 \
  }

#define WG_ADD_(a, b) ((a) + (b))
WG_REDUCE(workgroup_sum, subgroupAdd, WG_ADD_, 0.0)
// NaN-ignoring, as GLSL's max and min are; treat NaN before where it matters.
WG_REDUCE(workgroup_max, subgroupMax, max, uintBitsToFloat(0xff800000u))
WG_REDUCE(workgroup_min, subgroupMin, min, uintBitsToFloat(0x7f800000u))

#endif
