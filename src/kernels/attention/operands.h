// Pointers of attention kernels, as selected by their variants.
#pragma once

#include "common/interface.h"

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
