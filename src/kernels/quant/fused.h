// Quantized products of the same few rows as one dispatch, qmv_fused.comp or
// qmm_fragments_fused.comp, with what comes before and after them
// (runtime/rewrite.h). Each product is a set of weights; all have the format of
// the variant.
#ifndef QUANT_FUSED_H
#define QUANT_FUSED_H

#include "quant/product.h"
#include "quant/qmm_fragments.h"

// GATE: what is made of the first two sets, gate and up.
#define GATE_NONE 0
#define GATE_SILU 1 // gate * sigmoid(gate) * up
#define MAX_SETS 3

BEGIN_INTERFACE

// y = x @ w^T; sum = y + addend where there is an addend. Addresses.
struct MatvecSet {
  uint64_t w, scales, side, y, addend, sum;
  uint N, tiles; // tiles: workgroups along N
};

#ifdef __cplusplus
template <int SETS>
#endif
struct FusedMatvecArgs {
  uint64_t x;
  int64_t x_row; // from one row of x to the next
  uint64_t gated; // what GATE makes
  uint64_t norm_weight, normed; // NORM: of x; 0: none; what products take
  float eps, inverse_n;
  uint M, K, m_tiles, groups;
  uint set_count, unused;
  MatvecSet sets[SETS];
};

#ifdef __cplusplus
struct FusedQmvVariant : QmvVariant {
  uint SETS = 1; // 1 or MAX_SETS: how many there is room for
  uint GATE = GATE_NONE;
  uint NORM = 0; // items of the one row of x, which is normed first; 0: is not
  uint NORM_LANES = 0; // NormVariant::LANES
  bool operator==(const FusedQmvVariant&) const = default;
  KERNEL_VARIANT("quant/qmv_fused", QMV_MEMBERS, SETS, GATE, NORM, NORM_LANES)
};

struct FusedFragmentsVariant : QmmFragmentsVariant {
  uint SETS = 1, GATE = GATE_NONE; // as above
  // Of each set a workgroup.
  constexpr uint set_outputs() const {
    return GATE == GATE_NONE ? outputs() : outputs() / 2;
  }
  bool operator==(const FusedFragmentsVariant&) const = default;
  KERNEL_VARIANT("quant/qmm_fragments_fused", FRAGMENTS_MEMBERS, SETS, GATE)
};
#endif

END_INTERFACE

#endif
