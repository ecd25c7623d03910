#include "policy/policy.h"

namespace mlx::core::vulkan {

Policy adreno_policy(const Caps&) {
  Policy p{.name = "Adreno"};
  // Mesa, src/freedreno/ir3: 48 vectors of four a fiber, in subgroups of the
  // narrower of two sizes if they vary. It loads x early, and each lane keeps
  // its own copy of addresses that a workgroup chooses.
  p.lanes = 64;
  p.registers = 192;
  p.held_values = 111;
  p.mask_values = 4;
  p.several_values = 55;
  return p;
}

} // namespace mlx::core::vulkan
