// The evaluation of one array, for gpu::eval and our own walk of a graph
// (overrides/eval.cpp).
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Encodes the primitive of arr and its siblings on the stream of `encoder`, and
// closes the batch when that is due. The caller has waited for events of the
// inputs and holds a PlacementScope.
void evaluate(array& arr, StreamEncoder& encoder);

} // namespace mlx::core::vulkan
