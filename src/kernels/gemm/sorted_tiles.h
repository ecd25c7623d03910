// Where the tiles of sorted products begin (sorted_walk.glsl).
#ifndef SORTED_TILES_H
#define SORTED_TILES_H

#include "common/interface.h"

BEGIN_INTERFACE

// Of `rows` rows, equal indices stand together. Each run of them is cut into
// tiles of `height` rows, its last one shorter. `tiles`: their number, where
// each begins, and `rows`.
struct SortedTilesArgs {
  PTR(Ptr_u32, rhs)
  PTR(Ptr_u32, tiles)
  uint rows, height;
};

#ifdef __cplusplus
struct SortedTilesVariant {
  int WG;
  KERNEL_VARIANT("gemm/sorted_tiles", WG)
};
#endif

END_INTERFACE

#endif
