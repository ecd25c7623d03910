#include "policy/policy.h"

namespace mlx::core::vulkan {

// Intel PRM, "GRF": 128 registers per thread, of 64 bytes since Xe2, of which
// subgroups are at least 16 wide, and of 32 before, where they may be 8 wide.
// Mesa's compiler takes the widest that does not spill: 16 mostly. By ANV's
// code, dequantizing breaks even at some 1,000 rows on cards too.
Policy intel_policy(const Caps& caps) {
  bool xe2 = caps.min_subgroup_size >= 16;
  Policy p{
      .name = xe2 ? "Intel Xe2" : "Intel",
      .lanes = 16,
      .registers = 128,
      .held_values = 100,
      .mask_values = 4,
      .joined_values = xe2 ? 10u : 0u,
      .several_values = xe2 ? 0u : 10u};
  share_memory(p);
  return p;
}

} // namespace mlx::core::vulkan
