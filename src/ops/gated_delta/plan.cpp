#include "ops/gated_delta/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

GatedDeltaVariant plan_gated_delta(
    const Caps& caps,
    const GatedDeltaProblem& p) {
  // Few steps: more lanes a row, to have the state sooner. A team within a
  // subgroup needs no barrier.
  bool few = p.steps <= 8;
  uint32_t wanted = few && p.key_dim % 128 == 0 ? 32 : 8;
  uint32_t lanes = std::max(std::min(wanted, caps.min_subgroup_size), 4u);
  // Many: what is read of q and k serves two rows.
  bool two = !few && p.value_dim % 2 == 0 && p.key_dim <= 128;
  return {
      .T = p.type,
      .G = p.gate_type,
      .DK = p.key_dim,
      .LANES = lanes,
      .ROWS = two ? 2u : 1u,
      .GATES = p.vector_gates ? p.key_dim : 1,
      .VEC = p.aligned,
      .COUNTED = p.counted};
}

} // namespace mlx::core::vulkan
