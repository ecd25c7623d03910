#include "common/interface.h"

BEGIN_INTERFACE

// Strides are those of batch, step and head (and row, for v; and item, for g).
struct GatedDeltaArgs {
  PTR(T_PTR, q)
  PTR(T_PTR, k)
  PTR(T_PTR, v)
  PTR(G_PTR, g)
  PTR(T_PTR, beta)
  PTR(Ptr_f32, s)
  PTR(Ptr_i32, count) // of steps, where it is in memory
  PTR(T_PTR, y)
  PTR(Ptr_f32, state)
  uint64_t rows;
  int64_t q_s[3], k_s[3], v_s[4], g_s[4], beta_s[3];
  uint steps, heads, repeat, dv;
};

#ifdef __cplusplus
struct GatedDeltaVariant {
  Type T;
  Type G; // of the gates
  uint DK; // items of a row
  uint LANES; // of a team, which has one
  uint GATES; // 1 gate a head, or DK of them
  bool VEC; // q, k and the states in aligned fours
  bool COUNTED; // steps are *count, and batches follow each other
  KERNEL_VARIANT("gated_delta", T, G, DK, LANES, GATES, VEC, COUNTED)
};
#endif

END_INTERFACE
