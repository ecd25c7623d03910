#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

// Up to NDIM axes, outermost first. An argument block with members of type NEST
// is a template in C++.
#ifdef __cplusplus
#define TEMPLATE_NDIM template <int NDIM>
#define NEST Nest<NDIM>
#else
#define TEMPLATE_NDIM
#define NEST Nest
#endif

TEMPLATE_NDIM
struct Nest {
  int ndim;
  int shape[NDIM];
  int64_t strides[NDIM];
};

END_INTERFACE
