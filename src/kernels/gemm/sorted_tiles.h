// Tile boundaries of sorted products (sorted_walk.glsl).
#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

// Equal indices of `rows` rows are adjacent. Each run of them is split into
// tiles of `height` rows, the last one shorter. Output `tiles`: the tile count,
// the first row of each tile, and `rows`.
struct SortedTilesArgs {
  PTR(Ptr_u32, rhs)
  PTR(Ptr_u32, tiles)
  uint rows, height;
};

#ifdef __cplusplus
struct SortedTilesVariant {
  int WG;
  KERNEL_VARIANT("gemm/sorted_tiles", SortedTilesArgs, WG)
};
#endif

END_INTERFACE
