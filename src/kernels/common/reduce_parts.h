#ifndef REDUCE_PARTS_H
#define REDUCE_PARTS_H

#include "common/interface.h"

BEGIN_INTERFACE

// `outputs` reductions of `extent` elements, each in `splits` parts of `chunk`:
// part s of output o goes to y[s * outputs + o].
struct ReduceParts {
  uint64_t outputs, extent, chunk, splits;
};

END_INTERFACE

#endif
