#include "policy/policy.h"

namespace mlx::core::vulkan {

// What every GPU has.
Policy least_policy(const Caps&) {
  Policy p;
  p.registers = 0;
  p.held_values = 100;
  p.mask_values = 4;
  p.several_values = 10;
  return p;
}

} // namespace mlx::core::vulkan
