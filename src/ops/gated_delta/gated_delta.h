// The gated delta rule as one kernel, for mx.fast.gated_delta_update and for
// equivalent Metal kernels (ops/custom/meaning.h).
#pragma once

#include <optional>

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// q, k (B, T, Hk, Dk), v (B, T, Hv, Dv) and beta (B, T, Hv) share a floating
// type; g (B, T, Hv) or (B, T, Hv, Dk) has any; state (B, Hv, Dv, Dk) is
// float32. Dk must satisfy takes_gated_delta().
struct GatedDelta {
  array q, k, v, g, beta, state;
  // An int32 that replaces T as the number of steps; all arrays are then
  // row-contiguous.
  std::optional<array> count;
};

// y has the shape of v and the type of q; new_state has the shape of state and
// may alias it. Both must be allocated.
void gated_delta(
    StreamEncoder& enc,
    const GatedDelta& d,
    array& y,
    array& new_state);

// Whether all rows are aligned to four items.
bool in_fours(const array& a);

} // namespace mlx::core::vulkan
