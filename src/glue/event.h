// The runtime's side of MLX's events.
#pragma once

#include "mlx/array.h"
#include "mlx/event.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

// The event at its current value.
EventPoint point_of(const Event& event);

// Before a GPU stream uses `x`, which a CPU stream is still computing: makes
// the host copy the one that counts. No-op for events of GPU streams.
void follow_cpu_producer(const array& x, const Event& event);

} // namespace mlx::core::vulkan
