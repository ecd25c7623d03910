#ifndef ROWS_H
#define ROWS_H

#include "common/interface.h"

BEGIN_INTERFACE

// `count` rows of `n` items along a contiguous last axis: row r starts at
//   (r / inner) * outer_stride + (r % inner) * inner_stride.
struct RowArgs {
  uint64_t count;
  int64_t outer_stride, inner_stride;
  uint inner, n;
};

END_INTERFACE

#endif
