// The gradients of the gated delta rule: gated_delta_vjp.comp has those along
// rows of the state, gated_delta_sums.comp those that are sums over rows.
#include "common/interface.h"

BEGIN_INTERFACE

// Of steps [first, first + count). All arrays are contiguous: (batch, step,
// head, item), and the state (batch, head, row, item).
struct GatedDeltaVjpArgs {
  PTR(T_PTR, q)
  PTR(T_PTR, k)
  PTR(T_PTR, v)
  PTR(T_PTR, g)
  PTR(T_PTR, beta)
  PTR(T_PTR, cotan)
  PTR(Ptr_f32, s) // before the first of these steps
  PTR(Ptr_f32, states) // (step, batch, head, row, item): before each of them
  PTR(Ptr_f32, grads) // the same: of the state after each
  PTR(Ptr_f32, errors) // (step, batch, head, row, 2): v - p, and of delta
  PTR(T_PTR, dv)
  PTR(Ptr_f32, ds) // of the state, from the last of these steps to the first
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
  uint DK; // items of a row
  uint LANES; // of a team, which has one
  uint GATES; // 1 gate a head, or DK of them
  bool VEC; // all bases in aligned fours
  KERNEL_VARIANT("gated_delta_vjp", T, DK, LANES, GATES, VEC)
};
struct GatedDeltaSumsVariant {
  Type T;
  uint DK;
  uint GATES;
  KERNEL_VARIANT("gated_delta_sums", T, DK, GATES)
};
#endif

END_INTERFACE
