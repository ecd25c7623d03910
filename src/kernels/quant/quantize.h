#pragma once

#include "quant/formats.h"

// Workgroup size of dequantize.comp, and units of eight items per invocation.
#define DEQUANTIZE_WG 128
#define DEQUANTIZE_UNITS 4

BEGIN_INTERFACE

struct QuantizeArgs {
  PTR(T_PTR, x)
#if SIDE == SIDE_GLOBAL
  PTR(Ptr_f32, global_scale)
#endif
#if ROUNDTRIP
  PTR(T_PTR, y)
#else
  PTR(Ptr_u32, codes)
  PTR(SCALE_PTR, scales)
#if SIDE == SIDE_BIASES
  PTR(T_PTR, biases)
#endif
#endif
  uint groups;
};

struct DequantizeArgs {
  WEIGHT_INPUTS
  PTR(T_PTR, y)
  uint units; // units of eight items
};

#ifdef __cplusplus
struct QuantizeVariant : FormatVariant {
  bool ROUNDTRIP;
  bool VEC; // loads of four items
  uint LANES; // adjacent invocations that share a group of integers
  KERNEL_VARIANT(
      "quant/quantize", QuantizeArgs, T, FORMAT_MEMBERS, ROUNDTRIP, VEC, LANES)
};

struct DequantizeVariant : FormatVariant {
  KERNEL_VARIANT("quant/dequantize", DequantizeArgs, T, FORMAT_MEMBERS)
};
#endif

END_INTERFACE
