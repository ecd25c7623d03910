#include "policy/policy.h"

namespace mlx::core::vulkan {

// Mesa, src/asahi/compiler: 256 registers of 16 bits.
Policy apple_policy(const Caps&) {
  return {
      .name = "Apple", .registers = 128, .held_values = 100, .mask_values = 4};
}

} // namespace mlx::core::vulkan
