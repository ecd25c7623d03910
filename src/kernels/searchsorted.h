#include "common/interface.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <int NDIM>
#endif
struct SearchSortedArgs {
  PTR(T_PTR, sequence)
  PTR(T_PTR, values)
  PTR(Ptr_u32, dst)
  uint64_t count;
  int64_t sequence_stride;
  int64_t value_strides[NDIM];
  uint shape[NDIM];
  uint ndim;
  uint size; // length of the sequence
};

#ifdef __cplusplus
struct SearchSortedVariant {
  Type T;
  bool RIGHT;
  int NDIM;
  KERNEL_VARIANT("searchsorted", SearchSortedArgs, T, RIGHT, NDIM)
};
#endif

END_INTERFACE
