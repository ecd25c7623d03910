#include "common/interface.h"

BEGIN_INTERFACE

struct FillArgs {
  PTR(S_PTR, src)
  PTR(D_PTR, dst)
  uint64_t count, head; // head: items before the first 16-byte boundary
};

#ifdef __cplusplus
struct FillVariant {
  Type S, D;
  KERNEL_VARIANT("fill", FillArgs, S, D)
};
#endif

END_INTERFACE
