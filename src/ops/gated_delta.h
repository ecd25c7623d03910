// The gated delta rule, for its primitive and its gradients.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Whether all rows begin at multiples of four items.
bool fours_apart(const array& a);

// All steps of q (batch, step, key head, item), which has the type of k, v, g
// and beta, from the state `h` (batch, head, row, item), float32 and
// contiguous, into `out` (batch, step, head, row) and `state`, both of which
// have memory; `state` may be `h`. Items of q and k lie side by side.
void gated_delta(
    StreamEncoder& enc,
    const array& q,
    const array& k,
    const array& v,
    const array& g,
    const array& beta,
    const array& h,
    array& out,
    array& state);

} // namespace mlx::core::vulkan
