// Which kernel and tile a convolution takes when it is made as a product of
// matrices: a pure function of a device snapshot and the shapes. Free of MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/conv/product.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

struct ConvProblem {
  Type type = Type::f32;
  uint64_t rows = 0; // places of y
  uint32_t groups = 1, group_outputs = 0, channels = 0; // of a group
  uint64_t taps = 1;
  uint32_t tap_sum = 1; // of the sizes of w's axes
  uint32_t axes = 1;
  bool dilated = false; // x
  bool large = false; // offsets need 64 bits
  // Channels of x, of w and of y lie side by side, and can be moved as many at
  // a time as this says (a power of two, in items).
  uint32_t x_items = 1, w_items = 1, y_items = 1;
  bool may_split = true; // sums, for speed
  bool emulate = false; // matrix units, on software devices, for tests

  uint64_t depth() const {
    return taps * channels;
  }
};

struct ConvPlan {
  std::variant<ConvFragmentsVariant, ConvMatrixVariant, ConvTileVariant>
      variant;
  uint32_t tiles_m = 0, tiles_n = 0; // of a group
  uint32_t splits = 1, k_split = 0; // of the sums, and k's in each

  uint64_t workgroups(const ConvProblem& p) const {
    return uint64_t(tiles_m) * tiles_n * p.groups * splits;
  }
};

// None: too little work for it, or more taps than the kernels can tell apart.
std::optional<ConvPlan> plan_conv(const Caps& caps, const ConvProblem& p);

} // namespace mlx::core::vulkan
