#ifndef LOGSUMEXP_H
#define LOGSUMEXP_H

#include "common/interface.h"
#include "common/rows.h"

BEGIN_INTERFACE

// Rows whole, or with PARTS in `parts` parts of `chunk` items.
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

#ifdef __cplusplus
struct LogSumExpVariant {
  Type T;
  int LANES;
  bool VEC, PARTS;
  KERNEL_VARIANT("logsumexp", T, LANES, VEC, PARTS)
};

struct LogSumExpJoinVariant {
  Type T;
  int LANES;
  KERNEL_VARIANT("logsumexp_join", T, LANES)
};
#endif

END_INTERFACE

#endif
