// Interface of qmm_fragments.comp: quantized products of a few dozen rows, or
// of a few sorted rows per matrix.
#pragma once

#include "common/fragments.h"
#include "quant/product.h"

BEGIN_INTERFACE

#ifdef __cplusplus
struct QmmFragmentsVariant : ProductVariant {
  uint SG;
  uint FM, FX; // 16 x 16 fragments per subgroup, along outputs and rows
  uint WN, WK; // subgroups along outputs, and along k
  uint SPREAD; // items of k in a block that four lanes share, all of one group
  uint DEPTH, AHEAD; // chunks of codes, and steps of x, prefetched in registers
  bool SORTED; // rows of x are sorted by the index of their matrix
  FRAGMENT_MATRICES

  constexpr uint rows() const {
    return 16 * FX;
  }
  constexpr uint outputs() const {
    return 16 * FM * WN;
  }
  // Tiles of sums staged in shared memory at a time.
  constexpr uint at_once() const {
    uint tiles = FM * FX, room = 32 / (WN * WK);
    return tiles < room ? tiles : room;
  }
  // Shared memory of the kernel in bytes: the staged sums of all parts.
  constexpr uint shared_memory() const {
    return (WK > 1 ? WN * WK * at_once() * 8 * SG * 4 : 0) +
        (EMULATED ? WN * WK * 2048 : 0);
  }
  bool operator==(const QmmFragmentsVariant&) const = default;
#define FRAGMENTS_MEMBERS                                               \
  T, SG, PRODUCT_MEMBERS, FM, FX, WN, WK, SPREAD, DEPTH, AHEAD, SORTED, \
      FRAGMENT_NAMES
  KERNEL_VARIANT("quant/qmm_fragments", ProductArgs, FRAGMENTS_MEMBERS)
};
#endif

END_INTERFACE
