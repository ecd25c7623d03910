// Several quantized products of the same few rows, with preceding norm and
// epilogue, in one dispatch of qmv_fused.comp or qmm_fragments_fused.comp
// (runtime/rewrite.h). Each product has a set of weights; all sets share the
// variant's format.
#pragma once

#include "quant/product.h"
#include "quant/qmm_fragments.h"

// GATE: epilogue of the first two sets, gate and up.
#define GATE_NONE 0
#define GATE_SILU 1 // gate * sigmoid(gate) * up
#define MAX_SETS 3

BEGIN_INTERFACE

// y = x @ w^T, and sum = y + addend if there is an addend. Pointers are
// addresses.
struct MatvecSet {
  uint64_t w, scales, side, y, addend, sum;
  uint N, tiles; // tiles: workgroups along N
};

#ifdef __cplusplus
template <int SETS>
#endif
struct FusedMatvecArgs {
  uint64_t x;
  int64_t x_row; // stride between rows of x
  uint64_t gated; // output of GATE
  uint64_t norm_weight, normed; // with NORM: weight (0: none) and output
  float eps, inverse_n;
  uint M, K, m_tiles, groups;
  uint set_count, unused;
  MatvecSet sets[SETS];
};

#ifdef __cplusplus
struct FusedQmvVariant : QmvVariant {
  uint SETS = 1; // capacity: 1 or MAX_SETS
  uint GATE = GATE_NONE;
  uint NORM = 0; // items of the normalized row of x; 0: no norm
  uint NORM_LANES = 0; // NormVariant::LANES
  bool operator==(const FusedQmvVariant&) const = default;
  KERNEL_VARIANT(
      "quant/qmv_fused", FusedMatvecArgs, QMV_MEMBERS, SETS, GATE, NORM,
      NORM_LANES)
};

struct FusedFragmentsVariant : QmmFragmentsVariant {
  uint SETS = 1, GATE = GATE_NONE; // as in FusedQmvVariant
  // Outputs of each set per workgroup.
  constexpr uint set_outputs() const {
    return GATE == GATE_NONE ? outputs() : outputs() / 2;
  }
  bool operator==(const FusedFragmentsVariant&) const = default;
  KERNEL_VARIANT(
      "quant/qmm_fragments_fused", FusedMatvecArgs, FRAGMENTS_MEMBERS, SETS,
      GATE)
};
#endif

END_INTERFACE
