// Quantized products, shared by QuantizedMatmul, QQMatmul and their gather
// forms: makes operands addressable, chooses one kernel and dispatches it. Also
// quantization.
#pragma once

#include "mlx/primitives.h"
#include "ops/quant/operands.h"

namespace mlx::core::vulkan {

inline QuantFormat format_of(QuantizationMode mode, int bits, int group) {
  return quant_modes[static_cast<int>(mode)].format(bits, group);
}

// out = x @ w^T (transpose) or x @ w; allocates out. The caller or the encoder
// keeps operands alive; only matrices with non-contiguous rows are copied.
void quantized_product(
    StreamEncoder& enc,
    QuantOperands&& operands,
    array& out,
    const QuantFormat& format,
    bool transpose);

// Operands of a product that quantizes x too. Inputs: x, w, `between` others,
// scales if w is quantized, and for nvfp4 optionally both global scales.
QuantOperands qq_operands(
    StreamEncoder& enc,
    const std::vector<array>& inputs,
    size_t between,
    const QuantFormat& format);

// Dequantizes row-contiguous codes and scales into `out`, which has memory.
void dequantize(
    StreamEncoder& enc,
    const array& w,
    const array& scales,
    const std::optional<array>& side,
    array& out,
    const QuantFormat& format);

// Quantizes w's last axis to codes, scales (and affine biases); allocates them.
void quantize(
    StreamEncoder& enc,
    const array& w,
    const std::optional<array>& global_scale,
    std::vector<array>& outputs,
    const QuantFormat& format);

// x rounded to the values of the format, as a temporary of x's shape.
array quantize_roundtrip(
    StreamEncoder& enc,
    const array& x,
    const std::optional<array>& global_scale,
    const QuantFormat& format);

} // namespace mlx::core::vulkan
