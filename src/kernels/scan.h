#include "common/interface.h"

BEGIN_INTERFACE

struct ScanArgs {
  PTR(T_PTR, x)
#if STEP == Totals || STEP == Parts
  PTR(Acc_PTR, totals)
#endif
#if STEP != Totals
  PTR(U_PTR, y)
#endif
  uint64_t lines, stride, extent;
  uint64_t chunk, parts; // items per part, and parts per line
};

#ifdef __cplusplus
struct ScanVariant {
  Type T, U, Acc;
  const char* OP;
  bool REVERSE, INCLUSIVE;
  const char* STEP;
  bool FOURS; // four items per access; not in step Totals or with one lane
  int LANES = 256; // of a line
  KERNEL_VARIANT(
      "scan", ScanArgs, T, U, Acc, OP, REVERSE, INCLUSIVE, STEP, FOURS, LANES)
};
#endif

END_INTERFACE
