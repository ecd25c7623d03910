// Which experts a row takes, and with which weights, as one dispatch
// (runtime/rewrite_moe.cpp): softmax, order of the items, those of `k` places
// in it, their sum, and each over the sum. Everything that the separate kernels
// would write is written.
#ifndef ROUTER_H
#define ROUTER_H

#include "rows.h"

// A row's items wait in shared memory, and each is compared with all others.
#define ROUTER_MOST 512

BEGIN_INTERFACE

struct RouterArgs {
  PTR(T_PTR, x)
  PTR(T_PTR, gates) // softmax of x
  PTR(Ptr_u32, order) // argsort of those
  PTR(T_PTR, chosen) // of the places first to first + k; null: not asked for
  PTR(T_PTR, total) // of the chosen, or null
  PTR(T_PTR, weights) // chosen over total, or null
  uint rows, n, first, k;
  uint fours; // how the chosen are added up, see SumRecord
};

#ifdef __cplusplus
struct RouterVariant {
  Type T;
  int LANES, CHUNKS; // of the softmax
  bool VEC;
  bool operator==(const RouterVariant&) const = default;
  KERNEL_VARIANT("router", T, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE

#endif
