#include "attention/operands.h"

BEGIN_INTERFACE

struct MergeArgs {
  PTR(Ptr_f32, parts)
  SINKS_INPUT
  PTR(T_PTR, y)
  LSE_OUTPUT
  uint rows, heads, splits, queries;
};

#ifdef __cplusplus
struct MergeVariant {
  Type T = Type::f32;
  uint DV = 64;
  bool SINKS = false, LSE = false;
  KERNEL_VARIANT("attention/merge", T, DV, SINKS, LSE)
};
#endif

END_INTERFACE
