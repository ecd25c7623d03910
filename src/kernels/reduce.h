#include "common/interface.h"
#include "common/nest.h"
#include "common/reduce_parts.h"

BEGIN_INTERFACE

// Arguments of reduce.comp and reduce_col.comp.
TEMPLATE_NDIM
struct ReduceArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  ReduceParts parts;
  NEST kept, reduced;
};

#ifdef __cplusplus
struct ReduceVariant {
  Type T, U, Acc;
  const char* OP;
  int LANES, NDIM;
  bool VEC, LARGE;
  KERNEL_VARIANT("reduce", ReduceArgs, T, U, Acc, OP, LANES, NDIM, VEC, LARGE)
};

struct ReduceColVariant {
  Type T, U, Acc;
  const char* OP;
  int LANES, NDIM;
  bool VEC, LARGE;
  KERNEL_VARIANT(
      "reduce_col", ReduceArgs, T, U, Acc, OP, LANES, NDIM, VEC, LARGE)
};
#endif

END_INTERFACE
