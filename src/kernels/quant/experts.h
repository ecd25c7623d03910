// Products of rows with the experts that indices choose, as one dispatch,
// qmv_experts.comp, with what follows them (runtime/rewrite_moe.cpp).
// Everything that the separate kernels would write is written, and rounded as
// they do.
//
// GATE: a gate and an up product, and what is made of them. Else EXPERTS
// products for each row, weighted and added up.
#ifndef QUANT_EXPERTS_H
#define QUANT_EXPERTS_H

#include "quant/fused.h"

BEGIN_INTERFACE

// Product b takes matrix lhs[b] of x and rhs[b] of w, where b = i * inner + j
// is at i * strides[0] + j * strides[1] of the indices. Addresses.
struct ExpertSet {
  uint64_t w, scales, side, lhs, rhs, y;
  int64_t lhs_strides[2], rhs_strides[2];
  uint inner, w_matrices; // that rhs may name
};

struct ExpertArgs {
  uint64_t x;
  int64_t x_matrix, w_matrix, scale_matrix, side_matrix; // ProductStack
  uint64_t gated; // what GATE makes
  // weighted = y * weights, of each product; mixed = their sum; sum = mixed +
  // addend where there is an addend.
  uint64_t weights, weighted, mixed, addend, sum;
  uint K, N, n_tiles, groups;
  uint fours; // how they are added up, see SumRecord
  uint x_matrices; // that lhs may name
  ExpertSet sets[2]; // gate and up, or one
};

#ifdef __cplusplus
struct ExpertVariant : QmvVariant {
  uint GATE = GATE_NONE;
  uint EXPERTS = 0; // a row takes; 0 with GATE
  // Outputs that a workgroup makes of each of several products.
  uint part() const {
    return BLOCK / (GATE ? 2 : EXPERTS);
  }
  // About as many in all as there were, by whole passes.
  void share_outputs() {
    uint products = GATE ? 2 : EXPERTS;
    uint passes = BLOCK / (products * OUTS);
    BLOCK = (passes ? passes : 1) * products * OUTS;
  }
  bool operator==(const ExpertVariant&) const = default;
  KERNEL_VARIANT("quant/qmv_experts", QMV_MEMBERS, GATE, EXPERTS)
};
#endif

END_INTERFACE

#endif
