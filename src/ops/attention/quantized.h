// Attention of few rows over a quantized cache: what MLX-LM makes of a product
// with the keys' codes, a softmax and a product with the values' codes, as one
// kernel that reads both caches once (docs/dev/rewrites.md).
#pragma once

#include "ops/quant/qmm.h"

namespace mlx::core::vulkan {

// Operations of MLX from the scores to the product with the values, at most:
// the batch stays open for them.
constexpr uint32_t most_attention_operations = 24;

// Whether a product of a stack can be scores, q (.., rows, D) times keys.
bool may_be_scores(const QuantShape& s);

// The product of softmax(scores) with values, which `args` and `shape` address
// and nobody reads again: true if all of it became one dispatch that writes
// out.
bool attend_quantized(
    StreamEncoder& enc,
    const QuantOperands& values,
    const StackedProductArgs& args,
    const QuantShape& shape,
    array& out);

} // namespace mlx::core::vulkan
