// Quantized products, shared by QuantizedMatmul, QQMatmul and their gather
// forms: operands made addressable, one kernel chosen and dispatched.
#pragma once

#include <optional>

#include "backend/stream_encoder.h"
#include "mlx/primitives.h"
#include "ops/quant/plan.h"

namespace mlx::core::vulkan {

struct QuantFormat {
  int group_size;
  int bits;
  QuantizationMode mode;

  bool fp() const {
    return mode != QuantizationMode::Affine;
  }
};

// `side`: the biases (affine), or the global scale (nvfp4): one value, or one
// for each matrix of w with indices.
struct QuantOperands {
  array x, w, scales;
  std::optional<array> side;
  // Which matrix of x and of w each product takes; both or none.
  std::optional<array> lhs, rhs;
  bool sorted = false; // equal rhs indices stand together
};

// out = x @ w^T (transpose) or x @ w; allocates out. The operands are kept
// alive by the caller or by the encoder; copies are made only of matrices
// whose rows are not contiguous.
void quantized_product(
    StreamEncoder& enc,
    QuantOperands operands,
    array& out,
    const QuantFormat& format,
    bool transpose);

// Codes and scales (and affine biases) of w's last axis; allocates outputs.
void quantize(
    StreamEncoder& enc,
    const array& w,
    const std::optional<array>& global_scale,
    std::vector<array>& outputs,
    const QuantFormat& format);

// x rounded to what the format can hold, as a temporary of x's shape.
array quantize_roundtrip(
    StreamEncoder& enc,
    const array& x,
    const std::optional<array>& global_scale,
    const QuantFormat& format);

} // namespace mlx::core::vulkan
