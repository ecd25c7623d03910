// Kernels of joined products of few rows, for rewrite_matvec.cpp and tests.
#pragma once

#include <optional>

#include "runtime/rewrite_variants.h"

namespace mlx::core::vulkan {

// A row that takes more shared memory is normed by itself.
constexpr uint32_t most_normed_bytes = 16384;

// A kernel of several products, or of one product and a sum.
inline FusedQmvVariant fused_matvec(const QmvVariant& v, bool several) {
  return {v, several ? MAX_SETS : 1u};
}

// The same with the norm of their row of k items, by this many lanes.
inline FusedQmvVariant normed_matvec(FusedQmvVariant v, uint32_t k, int lanes) {
  v.NORM = k;
  v.NORM_LANES = static_cast<uint32_t>(lanes);
  return v;
}

// A gated product: each of the two products has half of a workgroup's outputs.
inline FusedQmvVariant gated_matvec(const QmvVariant& v, uint32_t gate) {
  FusedQmvVariant fused{v, MAX_SETS, gate};
  if (v.COOPMAT) {
    fused.BLOCK = 2 * v.BLOCK;
  } else if (v.BLOCK % (2 * v.OUTS) != 0) {
    fused.BLOCK = 2 * v.OUTS;
  }
  return fused;
}

// Whether both sum in the same order. The number of outputs that share a load
// does not matter, except beyond QMV_FEW_OUTS; nor does the size of a workgroup
// that does not share sums.
inline bool sums_alike(const QmvVariant& a, QmvVariant b) {
  if ((a.OUTS <= QMV_FEW_OUTS) != (b.OUTS <= QMV_FEW_OUTS)) {
    return false;
  }
  b.OUTS = a.OUTS;
  b.BLOCK = a.BLOCK;
  if (!a.WHOLE_WORKGROUP) {
    b.WG = a.WG;
  }
  return a == b;
}

inline FusedFragmentsVariant fused_fragments(
    const QmmFragmentsVariant& v,
    bool several) {
  return {v, several ? MAX_SETS : 1u};
}

// Each of the two has half of a subgroup's fragments; all sums are stored at
// once if subgroups share k.
inline std::optional<FusedFragmentsVariant> gated_fragments(
    const QmmFragmentsVariant& v,
    uint32_t gate) {
  FusedFragmentsVariant fused{v, MAX_SETS, gate};
  fused.FM += v.FM % 2;
  if (v.WK > 1 && fused.FM * v.FX > fused.at_once()) {
    return {};
  }
  return fused;
}

} // namespace mlx::core::vulkan
