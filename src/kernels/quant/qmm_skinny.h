// Interface of qmm_skinny.comp: quantized products of a few dozen rows.
#pragma once

#include "quant/product.h"

BEGIN_INTERFACE

#ifdef __cplusplus
struct QmmSkinnyVariant : ProductVariant {
  uint SG;
  uint FM, FN; // 16 x 16 fragments per subgroup, along rows and outputs
  uint WN, WK; // subgroups along outputs, and along k
  uint DEPTH; // units of k prefetched in registers

  constexpr uint rows() const {
    return 16 * FM;
  }
  constexpr uint outputs() const {
    return 16 * FN * WN;
  }
  // Shared memory of the kernel in bytes; eight items take 16 bytes.
  constexpr uint shared_memory() const {
    uint groups = GROUP < 64 ? 64 / GROUP : 1;
    uint sides = groups * 16 * FN * 8;
    uint w = 2 * (16 * FN * 3 + 4) * 16;
    uint x = 2 * (16 * FM * 3 + 4) * 16;
    return WK * (x + WN * (w + sides + 1024));
  }
  COOPMAT_VARIANT(
      "quant/qmm_skinny", ProductArgs, PRODUCT_MEMBERS, FM, FN, WN, WK, DEPTH)
};
#endif

END_INTERFACE
