#include "common/dynamic.h"
#include "common/interface.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <int MAX_NDIM>
#endif
struct DynamicOffsetArgs {
  PTR(I_PTR, indices)
  PTR(Ptr_i64, offset)
  int64_t strides[MAX_NDIM];
  uint sizes[MAX_NDIM], starts[MAX_NDIM]; // as in common/bounds.glsl
  uint count;
};

#ifdef __cplusplus
struct DynamicOffsetVariant {
  Type I;
  KERNEL_VARIANT("dynamic_offset", DynamicOffsetArgs, I)
};
#endif

END_INTERFACE
