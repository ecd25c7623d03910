// Offsets in nests of axes (common/nest.h). NEST_OFFSET(result, i, nest):
// offset in elements of the row-major index i. A macro, because arrays in
// buffers cannot be passed to a function.
#pragma once

#include "common/index.glsl"
#include "common/nest.h"

#if NDIM == 1
#define NEST_OFFSET(result, i, nest) result = Index(i) * Index(nest.strides[0])
#else
#define NEST_OFFSET(result, i, nest)                                          \
  OFFSET(result, i, nest.shape, nest.strides, nest.ndim)
#endif
