// Choice of kernel and tile for convolutions as implicit matrix products: a
// pure function of a device snapshot and the shapes. Free of MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/conv/product.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

struct ConvProblem {
  Type type = Type::f32;
  uint64_t rows = 0; // output positions
  uint32_t groups = 1, group_outputs = 0, channels = 0; // per group
  uint64_t taps = 1;
  uint32_t tap_sum = 1; // sum of the sizes of w's axes
  uint32_t axes = 1;
  bool dilated = false; // x is dilated
  bool large = false; // offsets need 64 bits
  // Items per vector access to the channels of x, w and y: a power of two;
  // above 1 channels are contiguous.
  uint32_t x_items = 1, w_items = 1, y_items = 1;
  bool may_split = true; // sums may be split over k, for speed

  uint64_t depth() const {
    return taps * channels;
  }
};

struct ConvPlan {
  std::variant<ConvFragmentsVariant, ConvMatrixVariant, ConvTileVariant>
      variant;
  uint32_t tiles_m = 0, tiles_n = 0; // tiles per group
  uint32_t splits = 1, k_split = 0; // parts of k, and their length

  uint64_t workgroups(const ConvProblem& p) const {
    return uint64_t(tiles_m) * tiles_n * p.groups * splits;
  }
};

// Empty if there is too little work, or more taps than the kernels support.
std::optional<ConvPlan> plan_conv(const Target& gpu, const ConvProblem& p);

} // namespace mlx::core::vulkan
