#include "common/interface.h"

BEGIN_INTERFACE

struct HadamardArgs {
  PTR(T_PTR, x)
  PTR(U_PTR, y)
  uint64_t size, stride;
  uint n, columns, high;
  float scale;
  uint signs[28];
};

#ifdef __cplusplus
struct HadamardVariant {
  Type T, U;
  int M;
  const char* STEP;
  uint TILE;
  KERNEL_VARIANT("hadamard", HadamardArgs, T, U, M, STEP, TILE)
};
#endif

END_INTERFACE
