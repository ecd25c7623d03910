// Reductions for primitives that end with one.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/primitives.h"

namespace mlx::core::vulkan {

// Reduces `in` over `axes` (sorted) into `out`, which must be allocated and
// row-contiguous. `in` may have any strides and may be empty.
void reduce_into(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Reduce::ReduceType op,
    const std::vector<int>& axes);

} // namespace mlx::core::vulkan
