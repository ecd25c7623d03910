// Which attention runs as one kernel.
#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::vulkan {

// What MLX asks ScaledDotProductAttention::use_fallback() with, whose
// parameters are its version's (src/versions).
struct AttentionCall {
  const array &q, &k, &v;
  bool has_array_mask, has_sinks, is_training, output_logsumexp, force_fused;
  Stream stream;
};

// Whether MLX has to decompose it. Throws std::invalid_argument with the reason
// where it must not.
bool decomposes_attention(const AttentionCall& c);

} // namespace mlx::core::vulkan
