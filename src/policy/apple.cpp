#include "policy/policy.h"

namespace mlx::core::vulkan {

Policy apple_policy(const Caps&) {
  Policy p{.name = "Apple"};
  // Mesa, src/asahi/compiler: 256 registers of 16 bits.
  p.registers = 128;
  p.held_values = 100;
  p.mask_values = 4;
  return p;
}

} // namespace mlx::core::vulkan
