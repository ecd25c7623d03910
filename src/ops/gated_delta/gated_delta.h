// The gated delta rule as one kernel, of mx.fast.gated_delta_update and of
// Metal kernels that mean the same (ops/custom/meaning.h).
#pragma once

#include <optional>

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// q, k (B, T, Hk, Dk), v (B, T, Hv, Dv), beta (B, T, Hv) of one floating type;
// g (B, T, Hv) or (B, T, Hv, Dk) of any; state (B, Hv, Dv, Dk), float32.
// Dk as takes_gated_delta() says.
struct GatedDelta {
  array q, k, v, g, beta, state;
  // An int32 in place of T as the number of steps; then all are row-contiguous.
  std::optional<array> count;
};

// y as v, of q's type; new_state as state, which it may share memory with.
// Both have memory.
void gated_delta(
    StreamEncoder& enc,
    const GatedDelta& d,
    array& y,
    array& new_state);

// Whether all rows begin at multiples of four items.
bool in_fours(const array& a);

} // namespace mlx::core::vulkan
