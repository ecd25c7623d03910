#include "common/interface.h"

BEGIN_INTERFACE

struct FftArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t lines, inner;
  uint extent, x_extent, y_extent;
  uint n, prefix, suffix, n1, n2;
  uint group_lines, last, inverse, stages;
  float scale;
  uint radices[32];
};

struct ChirpArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t size, inner;
  uint extent, held, wide, inverse;
  float scale;
};

#ifdef __cplusplus
struct FftVariant {
  Type T, U;
  int ITEMS;
  bool CAREFUL;
  KERNEL_VARIANT("fft/fft", T, U, ITEMS, CAREFUL)
};

struct ChirpVariant {
  Type T, U;
  const char* STEP;
  KERNEL_VARIANT("fft/chirp", T, U, STEP)
};
#endif

END_INTERFACE
