#include "gemm/batch.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <typename Batch>
#endif
struct SplitSumArgs {
  PTR(PART_PTR, parts)
#if AXPBY
  PTR(T_PTR, c)
#endif
  PTR(T_PTR, y)
  int64_t c_row, c_col;
  uint m, n, splits, batches;
  float alpha, beta;
  Batch batch; // strides of c
};

#ifdef __cplusplus
struct SplitSumVariant {
  Type T;
  bool AXPBY;
  uint BATCH;
  KERNEL_VARIANT("gemm/splitk_sum", SplitSumArgs, T, AXPBY, BATCH)
};
#endif

END_INTERFACE
