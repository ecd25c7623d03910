// Reductions for primitives that end in one.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// `out`, which must have memory and be row-contiguous, becomes the reduction
// of `in` over `axes` (sorted). Any strides; `in` may be empty.
void reduce_into(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Reduce::ReduceType op,
    const std::vector<int>& axes);

} // namespace mlx::core::vulkan
