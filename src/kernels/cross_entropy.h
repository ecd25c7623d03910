#ifndef CROSS_ENTROPY_H
#define CROSS_ENTROPY_H

#include "common/interface.h"
#include "common/rows.h"

BEGIN_INTERFACE

struct CrossEntropyArgs {
  PTR(T_PTR, x)
  PTR(Ptr_i32, target)
  PTR(Ptr_f32, y)
  RowArgs rows;
};

struct CrossEntropyVjpArgs {
  PTR(T_PTR, x)
  PTR(Ptr_i32, target)
  PTR(Ptr_f32, loss)
  PTR(Ptr_f32, cotangent)
  PTR(T_PTR, y)
  RowArgs rows;
};

#ifdef __cplusplus
struct CrossEntropyVariant {
  Type T;
  int LANES;
  bool VEC;
  KERNEL_VARIANT("cross_entropy", T, LANES, VEC)
};

struct CrossEntropyVjpVariant {
  Type T;
  int LANES;
  bool VEC;
  KERNEL_VARIANT("cross_entropy_vjp", T, LANES, VEC)
};
#endif

END_INTERFACE

#endif
