#include "policy/policy.h"

namespace mlx::core::vulkan {

// Any other GPU.
Policy least_policy(const Caps&) {
  return {
      .registers = 0,
      .held_values = 100,
      .mask_values = 4,
      .several_values = 10};
}

} // namespace mlx::core::vulkan
