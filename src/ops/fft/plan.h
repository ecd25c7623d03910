// How a Fourier transform is cut into passes and stages: pure functions of a
// device snapshot and a length, free of MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "vk/caps.h"

namespace mlx::core::vulkan {

struct FftPlan {
  int items; // that an invocation holds
  // Of the lines of each pass, whose product is the extent; none: lengths with
  // a large prime factor, by Bluestein's convolution.
  std::vector<uint32_t> lengths;
};
FftPlan plan_fft(const Caps& caps, uint64_t lines, uint32_t extent);

// A pass over `lines` lines of n.
struct FftPass {
  std::vector<uint32_t> radices; // of its stages
  uint32_t group_lines; // of a workgroup
};
FftPass plan_fft_pass(int items, uint64_t lines, uint32_t n, bool careful);

} // namespace mlx::core::vulkan
