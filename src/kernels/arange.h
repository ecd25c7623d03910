#include "common/interface.h"

BEGIN_INTERFACE

// Step is the type of the arithmetic. Integers use 64 bits and wrap around;
// floating-point values round once.
#ifdef __cplusplus
template <typename Step>
#elif FLOAT64
#define Step double
#elif T_KIND == KIND_FLOAT || T_KIND == KIND_COMPLEX
#define Step float
#else
#define Step int64_t
#endif
struct ArangeArgs {
  PTR(T_PTR, y)
  Step start, step;
  uint64_t n;
};

#ifdef __cplusplus
struct ArangeVariant {
  Type T;
  bool LARGE;
  KERNEL_VARIANT("arange", ArangeArgs, T, LARGE)
};
#endif

END_INTERFACE
