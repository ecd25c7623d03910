#include "ops/gated_delta/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

GatedDeltaVariant plan_gated_delta(
    const Caps& caps,
    const GatedDeltaProblem& p) {
  // For few steps more lanes a row load the state sooner. For many, few lanes
  // need fewer shuffles (H200, Dk 128: 4 lanes 1,420 us, 8 1,650, 16 1,540, 32
  // 2,300), with up to 32 items each. Teams within a subgroup need no barrier.
  bool few = p.steps <= 8;
  uint32_t wanted =
      few ? (p.key_dim % 128 == 0 ? 32 : 8) : (p.key_dim <= 128 ? 4 : 8);
  uint32_t lanes = std::max(std::min(wanted, caps.min_subgroup_size), 4u);
  return {
      .T = p.type,
      .G = p.gate_type,
      .DK = p.key_dim,
      .LANES = lanes,
      .GATES = p.vector_gates ? p.key_dim : 1,
      .VEC = p.aligned,
      .COUNTED = p.counted};
}

} // namespace mlx::core::vulkan
