// Start of each batch item's matrices, in elements. BATCH selects one of four
// structs.
#pragma once

#include "common/interface.h"

#define BATCH_EVEN 0
#define BATCH_NEST 1
#define BATCH_GATHER 2
#define BATCH_SORTED 3

#define BATCH_DIMS 8

BEGIN_INTERFACE

// One stride per operand.
struct BatchEven {
  int64_t a, b, c;
};

// Strides over collapsed dimensions.
struct BatchNest {
  int64_t a[BATCH_DIMS], b[BATCH_DIMS], c[BATCH_DIMS];
  int shape[BATCH_DIMS];
  int ndim;
};

// Item i of two index arrays (shape, lhs and rhs strides) selects the matrices
// of a and b, whose shapes and strides follow.
struct BatchGather {
  int64_t lhs[BATCH_DIMS], rhs[BATCH_DIMS];
  int64_t a[BATCH_DIMS], b[BATCH_DIMS];
  int shape[BATCH_DIMS], a_shape[BATCH_DIMS], b_shape[BATCH_DIMS];
  int ndim, a_ndim, b_ndim;
  uint a_count, b_count; // bounds of the indices
};

// Row i of y is row lhs[i] of a times matrix rhs[i] of b; equal matrix indices
// are adjacent.
struct BatchSorted {
  int b_pieces; // stride between matrices of b, in eight items
  uint a_count, b_count; // bounds of the indices
};

END_INTERFACE

#ifndef __cplusplus
#if BATCH == BATCH_SORTED
#define Batch BatchSorted
#elif BATCH == BATCH_GATHER
#define Batch BatchGather
#elif BATCH == BATCH_NEST
#define Batch BatchNest
#else
#define Batch BatchEven
#endif
#endif
