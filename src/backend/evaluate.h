// What gpu::eval and our own walk of a graph (overrides/eval.cpp) do for each
// array.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Encodes arr's primitive, for arr and its siblings, on the stream that
// `encoder` is of, and closes the batch when that is due. The caller has seen
// to events of the inputs and to a PlacementScope.
void evaluate(array& arr, StreamEncoder& encoder);

// After an exception out of an eval, which may have left the scheduler's count
// of active tasks one too high: a CPU dispatch counts its task before it learns
// of an earlier one's error. A count that stays above MLX's limit makes evals
// wait for ever. The eval's streams are idle by now; where another thread's CPU
// tasks are taken for a lost one, a later call counts one more again.
void mend_task_count();

} // namespace mlx::core::vulkan
