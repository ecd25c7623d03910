// The evaluation of one array, for gpu::eval and our own walk of a graph
// (overrides/eval.cpp).
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Encodes arr's primitive, for arr and its siblings, on the stream that
// `encoder` is of, and closes the batch when that is due. The caller has seen
// to events of the inputs and to a PlacementScope.
void evaluate(array& arr, StreamEncoder& encoder);

} // namespace mlx::core::vulkan
