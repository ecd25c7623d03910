// The operands of a quantized product, and their addresses, strides and sizes.
// Matrices whose rows are not contiguous are copied.
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
  // The matrix of x and of w for each product; both or none.
  std::optional<array> lhs, rhs;
  bool sorted = false; // equal rhs indices are adjacent
  bool last_use = false; // x is not read again
};

struct AddressedProduct {
  StackedProductArgs args; // without tiles and groups
  QuantShape shape;
};

// Replaces operands by copies if necessary; `enc` keeps these alive.
AddressedProduct address(
    StreamEncoder& enc,
    QuantOperands& operands,
    const array& out,
    const QuantFormat& format,
    bool transpose);

} // namespace mlx::core::vulkan
