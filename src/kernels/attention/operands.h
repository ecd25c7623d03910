// Pointers of attention kernels, as selected by their variants.
#pragma once

#include "common/interface.h"

// PARTS: a workgroup's result is rows of y, or a part that merge.comp (MERGED)
// or the last workgroup to arrive (JOINED) joins with the others.
#define PARTS_NONE 0
#define PARTS_MERGED 1
#define PARTS_JOINED 2

#if MASK == 1
#define MASK_PTR Ptr_bool
#else
#define MASK_PTR T_PTR
#endif
#if MASK
#define ATTENTION_INPUTS \
  PTR(T_PTR, q)          \
  PTR(T_PTR, k)          \
  PTR(T_PTR, v)          \
  PTR(MASK_PTR, mask)
#else
#define ATTENTION_INPUTS \
  PTR(T_PTR, q)          \
  PTR(T_PTR, k)          \
  PTR(T_PTR, v)
#endif
#if SINKS
#define SINKS_INPUT PTR(T_PTR, sinks)
#else
#define SINKS_INPUT
#endif
#if LSE
#define LSE_OUTPUT PTR(Ptr_f32, lse)
#else
#define LSE_OUTPUT
#endif
