#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

// `count` rows of `n` items along a contiguous last axis. Row r starts at
//   (r / inner) * outer_stride + (r % inner) * inner_stride.
struct RowArgs {
  uint64_t count;
  int64_t outer_stride, inner_stride;
  uint inner, n;
};

struct SoftmaxArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, y)
  RowArgs rows;
};

// Rows are whole, or with PARTS split into `parts` parts of `chunk` items.
struct LogSumExpArgs {
  PTR(T_PTR, x)
#if PARTS
  PTR(Ptr_c64, partial)
#else
  PTR(T_PTR, y)
#endif
  RowArgs rows;
  uint parts, chunk;
};

struct LogSumExpJoinArgs {
  PTR(Ptr_c64, partial)
  PTR(T_PTR, y)
  uint64_t rows;
  uint parts;
};

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
struct SoftmaxVariant {
  Type T;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("softmax", SoftmaxArgs, T, LANES, CHUNKS, VEC)
};

struct LogSumExpVariant {
  Type T;
  int LANES;
  bool VEC, PARTS;
  KERNEL_VARIANT("logsumexp", LogSumExpArgs, T, LANES, VEC, PARTS)
};

struct LogSumExpJoinVariant {
  Type T;
  int LANES;
  KERNEL_VARIANT("logsumexp_join", LogSumExpJoinArgs, T, LANES)
};

struct CrossEntropyVariant {
  Type T;
  int LANES;
  bool VEC;
  KERNEL_VARIANT("cross_entropy", CrossEntropyArgs, T, LANES, VEC)
};

struct CrossEntropyVjpVariant {
  Type T;
  int LANES;
  bool VEC;
  KERNEL_VARIANT("cross_entropy_vjp", CrossEntropyVjpArgs, T, LANES, VEC)
};

struct NormVariant {
  Type T;
  bool LAYER, WEIGHT, BIAS;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("norm", NormArgs, T, LAYER, WEIGHT, BIAS, LANES, CHUNKS, VEC)
};

struct NormVjpVariant {
  Type T;
  bool LAYER, WEIGHT;
  int LANES, CHUNKS;
  bool VEC;
  KERNEL_VARIANT("norm_vjp", NormVjpArgs, T, LAYER, WEIGHT, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE
