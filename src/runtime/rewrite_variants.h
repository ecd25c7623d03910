// The kernels that rewrite.h asks for, beside the plans' own.
#pragma once

#include "kernels/quant/fused.h"

namespace mlx::core::vulkan {

// A row that takes more shared memory is normed by itself.
constexpr uint32_t most_normed_bytes = 16384;

// Several products at once, or one with what is added to it.
inline FusedQmvVariant fused_matvec(const QmvVariant& v, bool several) {
  return {v, several ? MAX_SETS : 1u};
}

// The same after the norm of their row of k items, by so many lanes.
inline FusedQmvVariant normed_matvec(FusedQmvVariant v, uint32_t k, int lanes) {
  v.NORM = k;
  v.NORM_LANES = static_cast<uint32_t>(lanes);
  return v;
}

// Two products and the gate of them: each has half of a workgroup's outputs.
inline FusedQmvVariant gated_matvec(const QmvVariant& v, uint32_t gate) {
  FusedQmvVariant fused{v, MAX_SETS, gate};
  if (v.BLOCK % (2 * v.OUTS) != 0) {
    fused.BLOCK = 2 * v.OUTS;
  }
  return fused;
}

} // namespace mlx::core::vulkan
