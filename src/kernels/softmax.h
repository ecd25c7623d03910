#ifndef SOFTMAX_H
#define SOFTMAX_H

#include "common/interface.h"
#include "common/rows.h"

BEGIN_INTERFACE

struct SoftmaxArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, y)
  RowArgs rows;
};

#ifdef __cplusplus
struct SoftmaxVariant {
  Type T;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("softmax", T, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE

#endif
