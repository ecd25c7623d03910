#include "common/interface.h"
#include "common/nest.h"

BEGIN_INTERFACE

// Rows of n items, sorted by `tiles` workgroups each. In the result the items
// of a row are `post` apart.
struct SortRows {
  uint64_t count, post;
  uint n, tiles;
};

TEMPLATE_NDIM
struct SortTileArgs {
  PTR(T_PTR, src)
#if !(ARG && LAST)
  PTR(T_PTR, keys)
#endif
#if ARG
  PTR(Ptr_u32, positions)
#endif
  SortRows rows;
  int64_t axis_stride;
  NEST others; // the axes that are not sorted
};

struct SortMergeArgs {
  PTR(T_PTR, src)
#if ARG
  PTR(Ptr_u32, positions_in)
#endif
#if !(ARG && LAST)
  PTR(T_PTR, keys)
#endif
#if ARG
  PTR(Ptr_u32, positions)
#endif
  SortRows rows;
  uint run; // items of a sorted run
};

#ifdef __cplusplus
struct SortVariant {
  Type T;
  bool ARG, MERGE, LAST;
  int WG, ITEMS;
  int NDIM; // of SortTileArgs
  KERNEL_VARIANT("sort", T, ARG, MERGE, LAST, WG, ITEMS, NDIM)
};
#endif

END_INTERFACE
