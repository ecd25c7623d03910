// The operands of a quantized product, and what makes them addressable: copies
// of matrices whose rows are not contiguous, strides, sizes.
#pragma once

#include <optional>

#include "backend/stream_encoder.h"
#include "ops/quant/plan.h"

namespace mlx::core::vulkan {

// `side`: the biases (affine), or the global scale (nvfp4): one value, or one
// for each matrix of w with indices.
struct QuantOperands {
  array x, w, scales;
  std::optional<array> side;
  // Which matrix of x and of w each product takes; both or none.
  std::optional<array> lhs, rhs;
  bool sorted = false; // equal rhs indices stand together
  bool last_use = false; // nobody reads x again
};

struct AddressedProduct {
  StackedProductArgs args; // without tiles and groups
  QuantShape shape;
};

// Replaces operands by copies where it must, which `enc` keeps alive.
AddressedProduct address(
    StreamEncoder& enc,
    QuantOperands& operands,
    const array& out,
    const QuantFormat& format,
    bool transpose);

} // namespace mlx::core::vulkan
