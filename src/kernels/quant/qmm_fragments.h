// Quantized products of a few dozen rows, by qmm_fragments.comp.
#ifndef QMM_FRAGMENTS_H
#define QMM_FRAGMENTS_H

#include "quant/product.h"

BEGIN_INTERFACE

#ifdef __cplusplus
struct QmmFragmentsVariant : ProductVariant {
  uint SG;
  uint FM, FX; // 16 x 16 fragments of a subgroup, along outputs and rows
  uint WN, WK; // subgroups along outputs, and along k
  uint BLOCK; // items of k that four lanes share side by side, of one group
  uint DEPTH, AHEAD; // chunks of codes, and steps of x, that wait in registers

  constexpr uint rows() const {
    return 16 * FX;
  }
  constexpr uint outputs() const {
    return 16 * FM * WN;
  }
  // As the kernel declares it: sums of all parts, a number of tiles at once.
  constexpr uint shared_memory() const {
    uint tiles = FM * FX, room = 32 / (WN * WK);
    return WK > 1 ? WN * WK * (tiles < room ? tiles : room) * 8 * SG * 4 : 0;
  }
#define FRAGMENTS_MEMBERS PRODUCT_MEMBERS, FM, FX, WN, WK, BLOCK, DEPTH, AHEAD
  COOPMAT_VARIANT("quant/qmm_fragments", FRAGMENTS_MEMBERS)
};

// With matrices made of floats in shared memory: for tests of the indices where
// there are no cooperative matrices.
struct EmulatedFragmentsVariant : QmmFragmentsVariant {
  bool EMULATED = true;
  KERNEL_VARIANT("quant/qmm_fragments", T, SG, FRAGMENTS_MEMBERS, EMULATED)
};
#endif

END_INTERFACE

#endif
