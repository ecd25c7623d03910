#include "common/interface.h"
#include "common/nest.h"

// Outputs are keys and positions; the last pass of an argsort omits the keys.
#if ARG && LAST
#define SORTED_OUTPUTS PTR(Ptr_u32, positions)
#elif ARG
#define SORTED_OUTPUTS PTR(T_PTR, keys) PTR(Ptr_u32, positions)
#else
#define SORTED_OUTPUTS PTR(T_PTR, keys)
#endif

BEGIN_INTERFACE

// `count` rows of n items, each sorted by `tiles` workgroups. Consecutive items
// of a row are `post` apart in the result.
struct SortRows {
  uint64_t count, post;
  uint n, tiles;
};

TEMPLATE_NDIM
struct SortTileArgs {
  PTR(T_PTR, src)
  SORTED_OUTPUTS
  SortRows rows;
  int64_t axis_stride;
  NEST others; // all axes but the sorted one
};

struct SortMergeArgs {
  PTR(T_PTR, src)
#if ARG
  PTR(Ptr_u32, positions_in)
#endif
  SORTED_OUTPUTS
  SortRows rows;
  uint run; // items per sorted run
};

#ifdef __cplusplus
struct SortVariant {
  Type T;
  bool ARG, MERGE, LAST;
  int WG, ITEMS;
  int NDIM; // dimensions in SortTileArgs
  int ROWS; // of a workgroup
  TAKES(SortMergeArgs)
  KERNEL_VARIANT(
      "sort", SortTileArgs, T, ARG, MERGE, LAST, WG, ITEMS, NDIM, ROWS)
};
#endif

END_INTERFACE
