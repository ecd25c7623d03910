// Products of rows with the experts chosen by indices, together with their
// epilogue, in one dispatch of qmv_experts.comp (runtime/rewrite_moe.cpp). All
// outputs of the separate kernels are written, with the same rounding.
//
// With GATE the products are gate and up, followed by the gating; otherwise
// EXPERTS products per row are weighted and summed.
#pragma once

#include "quant/fused.h"

BEGIN_INTERFACE

// Product b multiplies matrix lhs[b] of x by rhs[b] of w; index b = i * inner +
// j is at i * strides[0] + j * strides[1]. Pointers are addresses.
struct ExpertSet {
  uint64_t w, scales, side, lhs, rhs, y;
  int64_t lhs_strides[2], rhs_strides[2];
  uint inner, w_matrices; // w_matrices: bound of rhs
};

struct ExpertArgs {
  uint64_t x;
  int64_t x_matrix, w_matrix, scale_matrix, side_matrix; // as in ProductStack
  uint64_t gated; // output of GATE
  // weighted = y * weights for each product; mixed is their sum over experts;
  // sum = mixed + addend if there is an addend.
  uint64_t weights, weighted, mixed, addend, sum;
  uint K, N, n_tiles, groups;
  uint x_matrices; // bound of lhs
  ExpertSet sets[2]; // gate and up, or one set
};

#ifdef __cplusplus
struct ExpertVariant : QmvVariant {
  uint GATE = GATE_NONE;
  uint EXPERTS = 0; // experts per row; 0 with GATE
  // Outputs per workgroup of each product.
  uint part() const {
    return BLOCK / (GATE ? 2 : EXPERTS);
  }
  // Rounds BLOCK to whole passes over all products, close to its old value.
  void share_outputs() {
    uint products = GATE ? 2 : EXPERTS;
    uint passes = BLOCK / (products * OUTS);
    BLOCK = (passes ? passes : 1) * products * OUTS;
  }
  bool operator==(const ExpertVariant&) const = default;
  KERNEL_VARIANT("quant/qmv_experts", ExpertArgs, QMV_MEMBERS, GATE, EXPERTS)
};
#endif

END_INTERFACE
