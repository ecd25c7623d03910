// Interface of qmm_tall.comp: quantized products of dozens of rows and more.
#pragma once

#include "common/fragments.h"
#include "quant/product.h"

BEGIN_INTERFACE

#ifdef __cplusplus
struct QmmTallVariant : ProductVariant {
  uint SG;
  uint BM, BN, WM, WN; // tile of y per workgroup; subgroups along each axis
  bool SORTED; // rows of x are sorted by the index of their matrix
  bool SPLIT; // y holds float partial sums, [part][M][N]
  FRAGMENT_MATRICES

  static constexpr uint depth = 128; // items of k per step of the main loop
  static constexpr uint staged = 64; // items of k in shared memory at a time

  // Shared memory of the kernel, in bytes.
  constexpr uint shared_memory() const {
    return 2 * BM * (staged / 8 + 1) * 16 + BN / 32 * 4 +
        (EMULATED ? WM * WN * 2048 : 0);
  }
#define TALL_MEMBERS \
  T, SG, PRODUCT_MEMBERS, BM, BN, WM, WN, SORTED, SPLIT, FRAGMENT_NAMES
  KERNEL_VARIANT("quant/qmm_tall", ProductArgs, TALL_MEMBERS)
};
#endif

END_INTERFACE
