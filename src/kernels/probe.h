// Interfaces of the probes of runtime/probe.cpp and runtime/measure_rates.cpp.
#include "common/interface.h"

BEGIN_INTERFACE

struct ProbeArgs {
  PTR(X_PTR, x)
  PTR(Y_PTR, y)
  uint n;
};

struct ProbeRateArgs {
  PTR(X_PTR, x)
  PTR(Y_PTR, y)
  uint n; // items of x
  uint turns; // of each invocation's loop
};

#ifdef __cplusplus
struct ProbeRateVariant {
  static constexpr int group = 128; // invocations
  // Floating-point operations of a turn.
  static constexpr int flops = 16;
  bool ARITHMETIC; // otherwise reads x
  KERNEL_VARIANT("probe_rate", ProbeRateArgs, ARITHMETIC)
};

struct ProbeLanesVariant {
  int WG_SIZE; // workgroup size and item count
  KERNEL_VARIANT("probe_lanes", ProbeArgs, WG_SIZE)
};

struct ProbeF16Variant {
  bool NATIVE_F16, NATIVE_F16_ROUNDING; // true: the conversion under test
  bool BACK;
  KERNEL_VARIANT("probe_f16", ProbeArgs, NATIVE_F16, NATIVE_F16_ROUNDING, BACK)
};

struct ProbeCoopmatVariant {
  Type T;
  MatrixUnits units;
  MATRIX_VARIANT("probe_coopmat", ProbeArgs)
};

struct ProbePrecisionVariant {
  static constexpr int DEPTH = 16384; // items of a sum
  Type T;
  MatrixUnits units;
  MATRIX_VARIANT("probe_precision", ProbeArgs, DEPTH)
};

struct ProbeFragmentsVariant {
  Type T;
  int SG;
  enum Input : int { of_c, of_a, of_b };
  int INPUT; // an Input; C holds float32
  COOPMAT_VARIANT("probe_fragments", ProbeArgs, INPUT)
};
#endif

END_INTERFACE
