// How a Fourier transform is cut into passes and stages: pure functions of a
// device snapshot and a length, free of MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/fft/fft.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

struct FftPlan {
  int items; // that an invocation holds
  // Of the lines of each pass, whose product is the extent; none: lengths with
  // a large prime factor, by Bluestein's convolution.
  std::vector<uint32_t> lengths;
};
FftPlan plan_fft(const Caps& caps, uint64_t lines, uint32_t extent);

// The lengths of the passes over an axis of a power of two, `inner` items
// apart, by fft_radix.comp; none for others, and where lines do not fit 32
// bits.
std::vector<uint32_t> plan_radix_lengths(
    const Caps& caps,
    uint64_t outer,
    uint32_t extent,
    uint64_t inner);

// A pass over `lines` lines of n, but for its types. `rows`: results that the
// last pass joins in an outer index.
FftRadixVariant plan_radix_pass(
    const Caps& caps,
    uint64_t lines,
    uint32_t n,
    bool last,
    uint64_t rows,
    uint64_t inner);

// A pass over `lines` lines of n.
struct FftPass {
  std::vector<uint32_t> radices; // of its stages
  uint32_t group_lines; // of a workgroup
};
FftPass plan_fft_pass(int items, uint64_t lines, uint32_t n, bool careful);

} // namespace mlx::core::vulkan
