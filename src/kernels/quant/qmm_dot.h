// Quantized products of many rows whose x is rounded to bytes: pack_rows.comp
// packs x, then qmm_dot.comp multiplies bytes by integer dot products. w is
// transposed.
//
// A packed row: its items as signed bytes, then for each block of them the
// scale d and the sum of what they stand for, two floats; whole pieces of 16
// bytes. An item x of a block stands for d * round(x / d), d = max |x| / 127,
// half to even. Items below 2^-126 are zeros if all of a block are; NaN or Inf
// in a block makes its scale and its sum NaN, and so all of the row's outputs.
#ifndef QMM_DOT_H
#define QMM_DOT_H

#include "common/interface.h"
#ifdef __cplusplus
#include "quant/product.h"
#endif

#define DOT_BLOCK 32 // items that share a scale
// Invocations of pack_rows.comp, and how many of them share a block.
#define PACK_WG 128
#define PACK_LANES 4

BEGIN_INTERFACE

struct PackRowsArgs {
  PTR(T_PTR, x)
  PTR(Ptr_u32, packed)
  int64_t x_row; // from one row of x to the next
  uint K, row_words; // of x; of a packed row
  uint blocks; // in all
};

#ifdef __cplusplus
constexpr uint packed_row_words(uint k) {
  return (k / DOT_BLOCK * (DOT_BLOCK / 4 + 2) + 3) / 4 * 4;
}

struct PackRowsVariant {
  Type T;
  bool EVEN_ODD; // of eight items those at 0, 2, 4, 6 come first
  bool VEC; // 16-byte loads of x
  KERNEL_VARIANT("quant/pack_rows", T, EVEN_ODD, VEC)
};

// x_row of its arguments counts words.
struct QmmDotVariant : ProductVariant {
  bool MIXED; // codes are unsigned bytes, else signed ones
  uint BM = 64, BN = 64, TM = 4, TN = 4; // outputs a workgroup, an invocation
  uint BK = 64; // of k in a tile
  bool INT_DOT = true;

  // How x is packed for these codes.
  bool even_odd() const {
    return BITS == 4;
  }
  // As the kernel declares it.
  constexpr uint shared_memory() const {
    uint span = uint(GROUP) < BK ? uint(GROUP) : BK;
    return (BM + BN) * (BK / 16 + 1) * 16 + BM * (BK / DOT_BLOCK) * 8 +
        BN * (BK / span) * 8;
  }
  KERNEL_VARIANT(
      "quant/qmm_dot",
      T,
      PRODUCT_MEMBERS,
      MIXED,
      BM,
      BN,
      TM,
      TN,
      BK,
      INT_DOT)
};
#endif

END_INTERFACE

#endif
