#include "attention/operands.h"

BEGIN_INTERFACE

struct MergeArgs {
  PTR(Ptr_f32, parts)
  SINKS_INPUT
  PTR(T_PTR, y)
  LSE_OUTPUT
  uint groups, gqa, kv_heads, row_groups, queries, splits; // as in DecodeArgs
};

#ifdef __cplusplus
struct MergeVariant {
  Type T = Type::f32;
  uint DV = 64;
  uint ROWS = 1; // as in DecodeVariant
  bool SINKS = false, LSE = false, HEADS_FIRST = false; // as in DecodeVariant
  KERNEL_VARIANT(
      "attention/merge", MergeArgs, T, DV, ROWS, SINKS, LSE, HEADS_FIRST)
};
#endif

END_INTERFACE
