#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

struct RopeArgs {
  PTR(T_PTR, x)
  PTR(Ptr_i32, offset)
#if FREQS
  PTR(Ptr_f32, freqs)
#endif
  PTR(T_PTR, y)
  int64_t b_stride, n_stride, t_stride, d_stride;
  int64_t offset_stride, freqs_stride;
  uint B, N, L, D;
  uint half_dims, heads, columns; // columns: invocations per head
  float scale;
  float log2_base, log2_base_low; // their sum is log2(base)
};

#ifdef __cplusplus
struct RopeVariant {
  Type T;
  bool TRADITIONAL, FREQS, VEC, FORWARD, LARGE;
  KERNEL_VARIANT("rope", RopeArgs, T, TRADITIONAL, FREQS, VEC, FORWARD, LARGE)
};
#endif

END_INTERFACE
