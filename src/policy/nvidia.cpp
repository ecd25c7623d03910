#include "policy/policy.h"

namespace mlx::core::vulkan {

// Thresholds are an H200's. CUDA C++ Programming Guide, "Features and Technical
// Specifications": 255 registers per thread. Nothing that plans chose spills on
// NVK, whose code converts x slowly (docs/lab/2026-11-26-one-row.md), and which
// fails to compile the convolution (Mesa 26.1): "an unknown error".
Policy nvidia_policy(const Caps& caps) {
  bool nvk = caps.driver_id == VK_DRIVER_ID_MESA_NVK;
  return {
      .name = "NVIDIA",
      .timed_tiles = true,
      .packs_halves = false, // this and the next two are not timed
      .finite_first = false,
      .vector_tiles = false,
      .dot_row = !nvk && caps.fast_dot_signed,
      .fragment_convolutions = !nvk};
}

} // namespace mlx::core::vulkan
