// Expert routing of a mixture-of-experts layer in one dispatch
// (runtime/rewrite_moe.cpp): softmax, argsort, the gates at `k` places of the
// order, their sum, and their quotients by the sum. All outputs of the separate
// kernels are written.
#pragma once

#include "rows.h"

// Largest row: its items are kept in shared memory and compared pairwise.
#define ROUTER_MOST 512

BEGIN_INTERFACE

struct RouterArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, gates) // softmax of x
  PTR(Ptr_u32, order) // argsort of gates
  PTR(T_PTR, chosen) // gates at places first to first + k, or null
  PTR(T_PTR, total) // sum of chosen, or null
  PTR(T_PTR, weights) // chosen / total, or null
  uint rows, n, first, k;
};

#ifdef __cplusplus
struct RouterVariant {
  Type T;
  int LANES, CHUNKS; // of the softmax
  bool VEC;
  bool operator==(const RouterVariant&) const = default;
  KERNEL_VARIANT("router", RouterArgs, T, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE
