// Attention of few rows over a quantized cache. MLX-LM computes it as a product
// with the keys' codes, a softmax and a product with the values' codes; here
// one kernel reads both caches once (docs/dev/rewrites.md).
#pragma once

#include "ops/quant/qmm.h"

namespace mlx::core::vulkan {

// Most operations of MLX between the scores and the product with the values;
// the batch stays open for so many.
constexpr uint32_t most_attention_operations = 24;

// Whether a product of a stack can be scores: q (.., rows, D) times keys.
bool may_be_scores(const QuantShape& s);

// The product of softmax(scores) with values, whose addresses `args` and
// `shape` give. The scores must not be read again. Returns true if one dispatch
// computes all of it into out.
bool attend_quantized(
    StreamEncoder& enc,
    const QuantOperands& values,
    const StackedProductArgs& args,
    const QuantShape& shape,
    array& out);

} // namespace mlx::core::vulkan
