// Quantized products of many rows with x rounded to bytes: pack_rows.comp packs
// x, qmm_dot.comp multiplies by integer dot products. w is transposed.
//
// A packed row holds its items as signed bytes, then for each block a float
// scale d and the float sum of its rounded items, padded to 16 bytes. Item x is
// rounded to d * round(x / d), half to even, with d = max |x| / 127. A block
// with all magnitudes below 127 * 2^-126 becomes zeros; NaN or Inf makes scale
// and sum NaN, and thus the row's outputs.
#pragma once

#include "common/interface.h"
#ifdef __cplusplus
#include "quant/product.h"
#endif

#define DOT_BLOCK 32 // items per scale
// Invocations per workgroup of pack_rows.comp, and invocations per block.
#define PACK_WG 128
#define PACK_LANES 4

BEGIN_INTERFACE

struct PackRowsArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, packed)
  int64_t x_row; // stride between rows of x
  uint K, row_words; // items of a row of x; words of a packed row
  uint blocks; // total count
};

#ifdef __cplusplus
constexpr uint packed_row_words(uint k) {
  return (k / DOT_BLOCK * (DOT_BLOCK / 4 + 2) + 3) / 4 * 4;
}

struct PackRowsVariant {
  Type T;
  bool EVEN_ODD; // eight items are stored in the order 0, 2, 4, 6, 1, 3, 5, 7
  bool VEC; // 16-byte loads of x
  KERNEL_VARIANT("quant/pack_rows", PackRowsArgs, T, EVEN_ODD, VEC)
};

// x_row of its arguments is in words.
struct QmmDotVariant : ProductVariant {
  bool MIXED; // codes are unsigned bytes, otherwise signed
  uint BM = 64, BN = 64, TM = 4, TN = 4; // outputs per workgroup, invocation
  uint BK = 64; // depth of a tile
  bool INT_DOT = true;

  // The item order of packed x that matches these codes.
  bool even_odd() const {
    return BITS == 4;
  }
  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    uint span = uint(GROUP) < BK ? uint(GROUP) : BK;
    return (BM + BN) * (BK / 16 + 1) * 16 + BM * (BK / DOT_BLOCK) * 8 +
        BN * (BK / span) * 8;
  }
  KERNEL_VARIANT(
      "quant/qmm_dot", ProductArgs, T, PRODUCT_MEMBERS, MIXED, BM, BN, TM, TN,
      BK, INT_DOT)
};
#endif

END_INTERFACE
