// Gradients of the gated delta rule. gated_delta_vjp.comp computes gradients
// along rows of the state, gated_delta_sums.comp those that are sums over rows.
#include "common/interface.h"

BEGIN_INTERFACE

// Backward pass over steps [first, first + count). Arrays are contiguous:
// (batch, step, head, item); the state is (batch, head, row, item).
struct GatedDeltaVjpArgs {
  PTR(T_PTR, q)
  PTR(T_PTR, k)
  PTR(T_PTR, v)
  PTR(T_PTR, g)
  PTR(T_PTR, beta)
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, s) // state before step `first`
  PTR(Ptr_f32, states) // (step, batch, head, row, item): state before each step
  PTR(Ptr_f32, grads) // same layout: gradient of the state after each step
  PTR(Ptr_f32, errors) // (step, batch, head, row, 2): v - p, gradient of delta
  PTR(T_PTR, dv)
  PTR(Ptr_f32, ds) // in: gradient of the last state; out: of the first
  uint64_t rows;
  uint first, count, steps, heads, repeat, dv_items;
};

struct GatedDeltaSumsArgs {
  PTR(T_PTR, k)
  PTR(T_PTR, g)
  PTR(T_PTR, beta)
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, states)
  PTR(Ptr_f32, grads)
  PTR(Ptr_f32, errors)
  PTR(T_PTR, dq)
  PTR(T_PTR, dk)
  PTR(T_PTR, dg)
  PTR(T_PTR, dbeta)
  uint64_t rows;
  uint first, count, steps, batches, heads, repeat, dv_items;
};

#ifdef __cplusplus
struct GatedDeltaVjpVariant {
  Type T;
  uint DK; // items per row
  uint LANES; // invocations per team; a team owns one row
  uint GATES; // gates per head: 1 or DK
  bool VEC; // all base addresses are aligned to four items
  KERNEL_VARIANT("gated_delta_vjp", GatedDeltaVjpArgs, T, DK, LANES, GATES, VEC)
};
struct GatedDeltaSumsVariant {
  Type T;
  uint DK;
  uint GATES;
  KERNEL_VARIANT("gated_delta_sums", GatedDeltaSumsArgs, T, DK, GATES)
};
#endif

END_INTERFACE
