#include "attention/strides.h"

BEGIN_INTERFACE

struct DeltaArgs {
  PTR(T_PTR, y)
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, delta)
  uint rows, heads, queries, value_dim;
  HeadStrides y_strides, cotan_strides;
};

#ifdef __cplusplus
struct DeltaVariant {
  Type T;
  bool VEC; // rows consist of aligned 16-byte pieces
  KERNEL_VARIANT("attention/vjp_delta", DeltaArgs, T, VEC)
};
#endif

END_INTERFACE
