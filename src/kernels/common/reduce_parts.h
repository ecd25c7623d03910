#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

// `outputs` reductions of `extent` elements, each in `splits` parts of `chunk`.
struct ReduceParts {
  uint64_t outputs, extent, chunk, splits;
};

END_INTERFACE
