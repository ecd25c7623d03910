// Plans of joined kernels, for rewrite.h.
#pragma once

#include <optional>

#include "kernels/quant/experts.h"
#include "kernels/rope_cache.h"
#include "kernels/router.h"
#include "policy/policy.h"
#include "runtime/descriptor.h"

namespace mlx::core::vulkan {

// A row that takes more shared memory is normed by itself.
constexpr uint32_t most_normed_bytes = 16384;

// A kernel of several products, or of one product and a sum.
inline FusedQmvVariant fused_matvec(const QmvVariant& v, bool several) {
  return {v, several ? MAX_SETS : 1u};
}

// That kernel with the norm of its row of k items, by this many lanes.
inline FusedQmvVariant normed_matvec(FusedQmvVariant v, uint32_t k, int lanes) {
  v.NORM = k;
  v.NORM_LANES = static_cast<uint32_t>(lanes);
  return v;
}

// A gated product: each of the two products has half of a workgroup's outputs.
inline FusedQmvVariant gated_matvec(const QmvVariant& v, uint32_t gate) {
  FusedQmvVariant fused{v, MAX_SETS, gate};
  if (v.COOPMAT || v.INT_DOT) {
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

// Gate and up of experts: each has half of a workgroup's outputs.
inline ExpertVariant gated_experts(const QmvVariant& v, uint32_t gate) {
  ExpertVariant e{v, gate};
  e.share_outputs();
  return e;
}

// The products of a row with its experts, side by side where workgroups do not
// share their sums.
constexpr uint32_t most_mixed_experts = 16;
inline ExpertVariant mixed_experts(const QmvVariant& v, uint32_t experts) {
  ExpertVariant e{v, GATE_NONE, experts};
  e.share_outputs();
  if (!v.WHOLE_WORKGROUP && experts > 4 && v.WG <= 128) {
    e.WG = 2 * v.WG;
  }
  return e;
}

// 32-bit values that a lane of qmv.comp holds at most: of each output codes,
// scales, two addresses and sums, which are apart for each class of codes; of
// each row of x eight items, their sums, and the address.
inline uint32_t held_values(const Policy& policy, const QmvVariant& v) {
  bool from_one = v.CODE == CODE_INTEGER && v.VEC && v.OUTS <= QMV_FEW_OUTS;
  uint32_t classes = !from_one || size_of(v.T) == 4 ? 1
      : v.BITS == 4                                 ? 2
      : v.BITS == 2                                 ? 4
                                                    : 1;
  uint32_t scales = v.SIDE == SIDE_BIASES ? 2 : 1;
  uint32_t row = 8 + classes + (policy.mask_values ? 2 : 0);
  uint32_t output =
      v.TURNS * (v.CHUNK * v.BITS / 32 + scales) + 4 + v.ROWS * (1 + classes);
  return v.ROWS * row + v.OUTS * output;
}

// Whether the kernel spills no registers, by the device's class. Gated outputs
// wait in shared memory.
inline bool fits_registers(const Policy& policy, const FusedQmvVariant& v) {
  uint32_t more = policy.joined_values;
  more += v.SETS > 1 && !v.NORM ? policy.several_values : 0;
  uint32_t less = v.GATE != GATE_NONE ? 2 : 0;
  return !policy.few_registers() ||
      held_values(policy, v) + more <= policy.held_values + less;
}

// Whether the device has the shared memory that the kernel declares: the normed
// row with 16 bytes between chunks, sums that the workgroup shares, and gated
// outputs. Devices with matrix units have enough.
inline bool fits_shared_memory(const Caps& caps, const FusedQmvVariant& v) {
  uint64_t row =
      uint64_t(v.NORM) * size_of(v.T) + v.NORM_LANES + v.NORM / v.CHUNK * 16;
  uint64_t sums = v.WHOLE_WORKGROUP ? v.WG * v.OUTS * v.ROWS : 0;
  uint64_t gated = v.GATE != GATE_NONE ? 4 * v.BLOCK * v.ROWS : 0;
  uint64_t all = row + sums + gated + v.digit_bytes(v.ROW_ITEMS);
  return v.COOPMAT || all <= caps.shared_memory;
}

// Kernels with matrix units have registers for the addresses of all sets on
// every device whose element layout is known.
inline bool fits_registers(const Policy& policy, const FusedFragmentsVariant&) {
  return !policy.few_registers();
}

// All outputs of the kernel of experts wait in shared memory.
inline bool fits_registers(const Policy& policy, const ExpertVariant& v) {
  uint32_t more = policy.joined_values + policy.several_values;
  return !policy.few_registers() ||
      held_values(policy, v) + more <= policy.held_values + 2;
}

// Kernels without products hold few values.
bool fits_registers(const Policy&, const auto&) {
  return true;
}

// Invocations of a workgroup of rope_cache.comp, and the longest head.
constexpr uint32_t rope_cache_group = 128;
constexpr uint32_t most_head_dims = 1024;

inline int head_chunks(uint32_t D, int lanes) {
  return static_cast<int>((D + 4 * lanes - 1) / (4 * lanes));
}
// Whether teams of so many lanes hold heads of D items: a workgroup's fit 12
// KiB of shared memory.
inline bool holds_head(uint32_t D, int lanes) {
  return uint32_t(lanes) <= rope_cache_group && head_chunks(D, lanes) <= 4;
}

// The variant for heads of D items with norms of so many lanes; 0: no norm.
inline RopeCacheVariant rope_cache(Type t, uint32_t D, int lanes, bool vec) {
  lanes = lanes ? lanes : D <= 128 ? 32 : 128;
  return {t, lanes, head_chunks(D, lanes), vec};
}

} // namespace mlx::core::vulkan
