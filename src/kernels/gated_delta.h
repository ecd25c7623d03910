#include "common/interface.h"

BEGIN_INTERFACE

// Strides are by batch, step and head; v has one more by row, g by item.
struct GatedDeltaArgs {
  PTR(T_PTR, q)
  PTR(T_PTR, k)
  PTR(T_PTR, v)
  PTR(G_PTR, g)
  PTR(T_PTR, beta)
  PTR(Ptr_f32, s)
  PTR(Ptr_i32, count) // step count in device memory, with COUNTED
  PTR(T_PTR, y)
  PTR(Ptr_f32, state)
  uint64_t rows;
  int64_t q_s[3], k_s[3], v_s[4], g_s[4], beta_s[3];
  uint steps, heads, repeat, dv;
};

#ifdef __cplusplus
struct GatedDeltaVariant {
  Type T;
  Type G; // type of the gates
  uint DK; // items per row
  uint LANES; // invocations per team; a team owns one row
  uint GATES; // gates per head: 1 or DK
  bool VEC; // q, k and states are aligned to four items
  bool COUNTED; // the step count is *count, and batches lie end to end
  KERNEL_VARIANT(
      "gated_delta", GatedDeltaArgs, T, G, DK, LANES, GATES, VEC, COUNTED)
};
#endif

END_INTERFACE
