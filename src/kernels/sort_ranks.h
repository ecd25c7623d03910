// Sorts rows of a few thousand items by counting ranks.
#include "common/interface.h"

BEGIN_INTERFACE

// `count` contiguous rows of n items; y holds sorted items, or with ARG their
// positions.
struct SortRanksArgs {
  PTR(T_PTR, src)
#if ARG
  PTR(Ptr_u32, y)
#else
  PTR(T_PTR, y)
#endif
  uint count, n;
};

#ifdef __cplusplus
struct SortRanksVariant {
  static constexpr uint WG = 256;
  static constexpr uint LANES = 32, OWN = 4; // invocations that share OWN items
  Type T;
  bool ARG;
  KERNEL_VARIANT("sort_ranks", SortRanksArgs, T, ARG, WG, LANES, OWN)
};
#endif

END_INTERFACE
