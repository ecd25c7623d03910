// Rows of bfloat16 x packed as float16 for quant/load_codes.glsl (HALVES),
// where matrix units take no bfloat16: K items, then for each group of GROUP
// items a float factor and the float sum of x, padded to 16 bytes. x is a
// packed item times the factor, a power of two that brings the group's largest
// finite item below 2^16. Items 2^31 times smaller are rounded by 2^-41 of the
// largest item, which is less than the rounding of float32 sums of x times
// codes (codes are at least 2^BITS).
#pragma once

#include "common/interface.h"

#define HALF_ROWS_WG 128
#define HALF_ROWS_LANES 4 // invocations per group

BEGIN_INTERFACE

struct HalfRowsArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, halves)
  int64_t x_row; // stride between rows of x
  uint K, pitch; // items of a row of x; 16-bit items of a packed row
  uint groups; // total count
};

#ifdef __cplusplus
constexpr uint half_row_pitch(uint k, uint group) {
  return (k + k / group * 4 + 7) / 8 * 8;
}

struct HalfRowsVariant {
  Type T;
  int GROUP;
  KERNEL_VARIANT("quant/half_rows", HalfRowsArgs, T, GROUP)
};
#endif

END_INTERFACE
