#include "policy/policy.h"

namespace mlx::core::vulkan {

// Mesa, src/freedreno/ir3: 48 vectors of four per fiber, in subgroups of the
// narrower of two sizes if they vary. It loads x early, and each lane keeps its
// own copy of addresses that a workgroup chooses.
Policy adreno_policy(const Caps&) {
  return {
      .name = "Adreno",
      .lanes = 64,
      .registers = 192,
      .held_values = 111,
      .mask_values = 4,
      .several_values = 55};
}

} // namespace mlx::core::vulkan
