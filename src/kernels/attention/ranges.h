// Magnitudes of q, k and v, from which attention of bfloat16 on float16
// matrices chooses powers of two (attention/halves.glsl).
#pragma once

#include "attention/strides.h"

#define RANGES_WG 256

BEGIN_INTERFACE

// For each KV head of a batch, for q of its heads, for k and for v: the largest
// item and the smallest nonzero one minus 1, as bits without sign.
struct RangesArgs {
  PTR(T_PTR, q)
  PTR(T_PTR, k)
  PTR(T_PTR, v)
  PTR(Ptr_u32, ranges)
  uint heads, kv_heads, queries, keys;
  HeadStrides q_strides, k_strides, v_strides;
};

#ifdef __cplusplus
struct RangesVariant {
  Type T;
  uint D, DV;
  KERNEL_VARIANT("attention/ranges", RangesArgs, T, D, DV)
};
#endif

END_INTERFACE
