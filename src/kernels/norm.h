#ifndef NORM_H
#define NORM_H

#include "common/interface.h"
#include "common/rows.h"

BEGIN_INTERFACE

struct NormArgs {
  PTR(T_PTR, x)
#if WEIGHT
  PTR(T_PTR, w)
#endif
#if BIAS
  PTR(T_PTR, b)
#endif
  PTR(T_PTR, y)
  RowArgs rows;
  int64_t w_stride, b_stride;
  float eps, inverse_n;
};

struct NormVjpArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, g)
#if WEIGHT
  PTR(T_PTR, w)
#endif
  PTR(T_PTR, gx)
#if WEIGHT
  PTR(Ptr_f32, gw)
#endif
  uint64_t rows, rows_per_group;
  int64_t w_stride;
  uint n;
  float eps, inverse_n;
};

#ifdef __cplusplus
struct NormVariant {
  Type T;
  bool LAYER, WEIGHT, BIAS;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("norm", T, LAYER, WEIGHT, BIAS, LANES, CHUNKS, VEC)
};

struct NormVjpVariant {
  Type T;
  bool LAYER, WEIGHT;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("norm_vjp", T, LAYER, WEIGHT, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE

#endif
