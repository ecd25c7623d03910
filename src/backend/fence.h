// The functions of MLX's fences. Their members are in src/versions.
#pragma once

#include "mlx/array.h"
#include "mlx/event.h"

namespace mlx::core::vulkan {

// Counts updates; the event's values are the counts.
struct FenceState {
  explicit FenceState(Stream s) : event(s) {}
  uint32_t count = 0;
  Event event;
};

// Later work of `s` runs after the update of x that returned `value`.
void wait_for_fence(
    const FenceState& f,
    Stream s,
    const array& x,
    uint32_t value);
uint32_t
update_fence(FenceState& f, Stream s, const array& x, bool cross_device);

} // namespace mlx::core::vulkan
