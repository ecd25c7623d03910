// Known-answer probes (runtime/probe.cpp).
#include "common/interface.h"

BEGIN_INTERFACE

struct ProbeArgs {
  PTR(X_PTR, x)
  PTR(Y_PTR, y)
  uint n;
};

#ifdef __cplusplus
struct ProbeLanesVariant {
  int WG_SIZE; // and items
  KERNEL_VARIANT("probe_lanes", WG_SIZE)
};

struct ProbeF16Variant {
  bool NATIVE_F16, NATIVE_F16_ROUNDING; // true: what is probed
  bool BACK;
  KERNEL_VARIANT("probe_f16", NATIVE_F16, NATIVE_F16_ROUNDING, BACK)
};

struct ProbeCoopmatVariant {
  Type T;
  MatrixUnits units;
  MATRIX_VARIANT("probe_coopmat")
};

struct ProbeFragmentsVariant {
  Type T;
  int SG;
  enum Input : int { of_c, of_a, of_b };
  int INPUT; // an Input; C is a matrix of floats
  COOPMAT_VARIANT("probe_fragments", INPUT)
};
#endif

END_INTERFACE
