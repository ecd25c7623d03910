// Factorization of Fourier transforms into passes and stages: pure functions of
// a device snapshot and a length, free of MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/fft/fft.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

struct FftPlan {
  int items; // per invocation
  // Line length of each pass; their product is the extent. Empty for lengths
  // with a large prime factor, which use Bluestein's algorithm.
  std::vector<uint32_t> lengths;
};
FftPlan plan_fft(const Caps& caps, uint64_t lines, uint32_t extent);

// Line lengths of fft_radix.comp's passes over a power-of-two axis with stride
// `inner`; empty for other lengths, and if line counts exceed 32 bits.
std::vector<uint32_t> plan_radix_lengths(
    const Caps& caps,
    uint64_t outer,
    uint32_t extent,
    uint64_t inner);

// Variant of a pass over `lines` lines of n, without its types. `rows`: rows of
// results per outer index in the last pass.
FftRadixVariant plan_radix_pass(
    const Target& gpu,
    uint64_t lines,
    uint32_t n,
    bool last,
    uint64_t rows,
    uint64_t inner);

// A pass over `lines` lines of n.
struct FftPass {
  std::vector<uint32_t> radices; // one per stage
  uint32_t group_lines; // lines per workgroup
};
FftPass plan_fft_pass(int items, uint64_t lines, uint32_t n, bool careful);

} // namespace mlx::core::vulkan
