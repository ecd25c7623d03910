#include "common/interface.h"
#include "common/nest.h"
#include "common/reduce_parts.h"

BEGIN_INTERFACE

TEMPLATE_NDIM
struct ArgReduceArgs {
  PTR(T_PTR, x)
#if JOIN
  PTR(Ptr_u32, found)
#endif
  PTR(Ptr_u32, y)
  ReduceParts parts;
  int64_t axis_stride;
  NEST kept;
};

#ifdef __cplusplus
struct ArgReduceVariant {
  Type T, Acc;
  const char* OP;
  int LANES, NDIM;
  bool JOIN, LARGE;
  KERNEL_VARIANT(
      "arg_reduce", ArgReduceArgs, T, Acc, OP, LANES, NDIM, JOIN, LARGE)
};
#endif

END_INTERFACE
