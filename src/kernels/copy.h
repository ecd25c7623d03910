#pragma once

#include "common/dynamic.h"
#include "common/interface.h"

BEGIN_INTERFACE

#ifdef __cplusplus
template <int NDIM, typename Index>
#endif
struct CopyArgs {
  PTR(SRC_PTR, src)
#if DYN_IN
  PTR(Ptr_i64, dynamic_in)
#endif
#if DYN_OUT
  PTR(Ptr_i64, dynamic_out)
#endif
  PTR(DST_PTR, dst)
  Index count;
  Index in_offset, out_offset;
  Index in_strides[NDIM], out_strides[NDIM];
  uint shape[NDIM];
  uint ndim;
};

#ifdef __cplusplus
struct CopyVariant {
  int WORD; // bytes per raw word; 0 converts from S to D
  Type S, D;
  const char* REDUCE; // a function of common/combine.glsl; "none" replaces dst
  bool REDUCES; // REDUCE is not "none"
  int NDIM;
  bool DYN_IN, DYN_OUT; // offsets computed by an earlier kernel
  bool LARGE;
  KERNEL_VARIANT(
      "copy", CopyArgs, WORD, S, D, REDUCE, REDUCES, NDIM, DYN_IN, DYN_OUT,
      LARGE)
};
#endif

END_INTERFACE
