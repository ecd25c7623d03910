// Where the matrices of one batch item start, in elements. BATCH chooses what
// the host says of it, one of three structs.
#ifndef GEMM_BATCH_H
#define GEMM_BATCH_H

#include "common/interface.h"

#define BATCH_EVEN 0
#define BATCH_NEST 1
#define BATCH_GATHER 2

#define BATCH_DIMS 8

BEGIN_INTERFACE

// One stride an operand.
struct BatchEven {
  int64_t a, b, c;
};

// Collapsed dimensions.
struct BatchNest {
  int64_t a[BATCH_DIMS], b[BATCH_DIMS], c[BATCH_DIMS];
  int shape[BATCH_DIMS];
  int ndim;
};

// The item of two index arrays, of the shape and strides given first, names the
// matrices of a and b.
struct BatchGather {
  int64_t lhs[BATCH_DIMS], rhs[BATCH_DIMS];
  int64_t a[BATCH_DIMS], b[BATCH_DIMS];
  int shape[BATCH_DIMS], a_shape[BATCH_DIMS], b_shape[BATCH_DIMS];
  int ndim, a_ndim, b_ndim;
  uint a_count, b_count; // matrices that indices may name
};

END_INTERFACE

#ifndef __cplusplus
#if BATCH == BATCH_GATHER
#define Batch BatchGather
#elif BATCH == BATCH_NEST
#define Batch BatchNest
#else
#define Batch BatchEven
#endif
#endif

#endif
