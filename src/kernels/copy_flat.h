#include "common/interface.h"

BEGIN_INTERFACE

struct CopyFlatArgs {
  PTR(S_PTR, src)
  PTR(D_PTR, dst)
  uint64_t count;
};

#ifdef __cplusplus
struct CopyFlatVariant {
  bool RAW; // S and D are u8
  Type S, D;
  KERNEL_VARIANT("copy_flat", CopyFlatArgs, RAW, S, D)
};
#endif

END_INTERFACE
