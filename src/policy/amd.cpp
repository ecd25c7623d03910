#include "policy/policy.h"

namespace mlx::core::vulkan {

// RDNA and GCN ISA guides: 256 vector registers per lane; but with more than
// 128 a SIMD hides little latency, and Mesa 22.3 gives RDNA3 no more.
Policy amd_policy(const Caps&) {
  return {.name = "AMD", .registers = 128, .held_values = 128};
}

} // namespace mlx::core::vulkan
