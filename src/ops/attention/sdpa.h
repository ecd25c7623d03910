// Decides which attention calls run as one kernel.
#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::vulkan {

// Arguments of MLX's ScaledDotProductAttention::use_fallback(), whose
// parameters depend on the MLX version (src/versions).
struct AttentionCall {
  const array &q, &k, &v;
  bool has_array_mask, has_sinks, is_training, output_logsumexp, force_fused;
  Stream stream;
};

// Whether MLX must decompose the call. Throws std::invalid_argument with the
// reason if decomposition is forbidden.
bool decomposes_attention(const AttentionCall& c);

} // namespace mlx::core::vulkan
