// Quantized products, shared by QuantizedMatmul, QQMatmul and their gather
// forms: operands made addressable, one kernel chosen and dispatched. And
// quantization.
#pragma once

#include "mlx/primitives.h"
#include "ops/quant/operands.h"

namespace mlx::core::vulkan {

inline QuantFormat format_of(QuantizationMode mode, int bits, int group) {
  return quant_modes[static_cast<int>(mode)].format(bits, group);
}

// out = x @ w^T (transpose) or x @ w; allocates out. The operands are kept
// alive by the caller or by the encoder; copies are made only of matrices
// whose rows are not contiguous.
void quantized_product(
    StreamEncoder& enc,
    QuantOperands&& operands,
    array& out,
    const QuantFormat& format,
    bool transpose);

// Operands of a product that quantizes x too. Inputs: x, w, `between` others,
// the scales if w is quantized, and for nvfp4 maybe the global scales of x and
// of w.
QuantOperands qq_operands(
    StreamEncoder& enc,
    const std::vector<array>& inputs,
    size_t between,
    const QuantFormat& format);

// Items of codes and scales, all row-contiguous, into `out`, which has memory.
void dequantize(
    StreamEncoder& enc,
    const array& w,
    const array& scales,
    const std::optional<array>& side,
    array& out,
    const QuantFormat& format);

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
