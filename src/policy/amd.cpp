#include "policy/policy.h"

namespace mlx::core::vulkan {

Policy amd_policy(const Caps&) {
  Policy p{.name = "AMD"};
  // RDNA and GCN ISA guides: 256 vector registers per lane; but with more than
  // 128 a SIMD hides little latency, and Mesa 22.3 gives RDNA3 no more.
  p.registers = p.held_values = 128;
  return p;
}

} // namespace mlx::core::vulkan
