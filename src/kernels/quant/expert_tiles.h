// Where the tiles of sorted products begin (tile.glsl).
#ifndef QUANT_EXPERT_TILES_H
#define QUANT_EXPERT_TILES_H

#include "common/interface.h"

BEGIN_INTERFACE

// Of `rows` rows, equal indices stand together. Each run of them is cut into
// tiles of `height` rows, its last one shorter. `tiles`: their number, where
// each begins, and `rows`.
struct ExpertTilesArgs {
  PTR(Ptr_u32, rhs)
  PTR(Ptr_u32, tiles)
  uint rows, height;
};

#ifdef __cplusplus
struct ExpertTilesVariant {
  int WG;
  KERNEL_VARIANT("quant/expert_tiles", WG)
};
#endif

END_INTERFACE

#endif
