#include "common/interface.h"

BEGIN_INTERFACE

struct ConvertFp8Args {
#if TO_FP8
  PTR(T_PTR, x)
  PTR(Ptr_u8, y)
#else
  PTR(Ptr_u8, x)
  PTR(T_PTR, y)
#endif
  uint64_t n;
};

#ifdef __cplusplus
struct ConvertFp8Variant {
  Type T;
  bool TO_FP8;
  KERNEL_VARIANT("quant/convert_fp8", ConvertFp8Args, T, TO_FP8)
};
#endif

END_INTERFACE
