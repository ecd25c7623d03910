#include "policy/policy.h"

namespace mlx::core::vulkan {

// Thresholds are those of an H200.
Policy nvidia_policy(const Caps& caps) {
  Policy p{.name = "NVIDIA"};
  // CUDA C++ Programming Guide, "Features and Technical Specifications": 255
  // registers per thread. Nothing that plans chose spills on NVK.
  p.registers = p.held_values = 255;
  p.timed_tiles = true;
  // Not timed here.
  p.packs_halves = p.finite_first = p.vector_tiles = false;
  // NVK's code converts x slowly (docs/lab/2026-11-26-one-row.md), and it fails
  // to compile the convolution (Mesa 26.1): "an unknown error".
  bool nvk = caps.driver_id == VK_DRIVER_ID_MESA_NVK;
  p.dot_row = !nvk && caps.fast_dot_signed;
  p.fragment_convolutions = !nvk;
  return p;
}

} // namespace mlx::core::vulkan
