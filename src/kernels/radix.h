#include "common/interface.h"

// Items per invocation of steps Count and Scatter, and subgroups per workgroup.
#define RADIX_ITEMS 16
#define RADIX_SUBGROUPS 8
#define RADIX_DIGITS 256

BEGIN_INTERFACE

// Sorts rows of n items, in `tiles` tiles of RADIX_SUBGROUPS * SG *
// RADIX_ITEMS, by bits [shift, shift + 8) of the keys.
struct RadixArgs {
#if STEP == Count
  PTR(T_PTR, keys_in)
  PTR(Ptr_u32, counts)
#elif STEP == Prefix
  PTR(Ptr_u32, counts)
  PTR(Ptr_u32, totals)
#else
  PTR(T_PTR, keys_in)
  PTR(Ptr_u32, counts)
  PTR(Ptr_u32, totals)
#if ARG && !FIRST
  PTR(Ptr_u32, positions_in)
#endif
#if !(ARG && LAST)
  PTR(T_PTR, keys)
#endif
#if ARG
  PTR(Ptr_u32, positions)
#endif
#endif
  uint64_t rows;
  uint n, tiles, shift;
};

#ifdef __cplusplus
// T: unsigned type of a key's size. ORDER: Unsigned, Signed or Float, whose
// infinity has the bits INF. ARG, FIRST and LAST (digit) are for Scatter.
struct RadixVariant {
  const char* STEP;
  Type T;
  const char* ORDER;
  int INF;
  bool ARG, FIRST, LAST;
  int SG;
  KERNEL_VARIANT("radix", RadixArgs, STEP, T, ORDER, INF, ARG, FIRST, LAST, SG)
};
#endif

END_INTERFACE
