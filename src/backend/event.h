// The runtime's side of MLX's events.
#pragma once

#include "mlx/array.h"
#include "mlx/event.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

// The event's state, made by its constructor (src/versions).
const std::shared_ptr<EventState>& state_of(const Event& event);

// The event at its current value.
EventPoint point_of(const Event& event);

// The number of the eval that attaches the event; without an event, the number
// of this thread's last eval that attached none.
uint64_t number_of(const Event& event);
void begin_eval_without_events();

// Throws std::runtime_error with the reason if the work before the event is
// known to have failed.
void throw_if_failed(const Event& event);

// Whether an event of a CPU stream has failed in this process.
bool had_cpu_failures();

// Called before a GPU stream uses `x`, which a CPU stream is still computing:
// makes the host side authoritative. No-op for events of GPU streams.
void follow_cpu_producer(const array& x, const Event& event);
// Whether that has happened; before, no buffer awaits a CPU stream.
bool had_cpu_producers();

// Inputs that Fence::wait has seen on this thread for the next gpu::eval. Their
// event, if any, is signalled only at the end of that eval and must not be
// taken for their producer's.
void add_fenced_input(const array& x);
bool is_fenced_input(const array& x);
void clear_fenced_inputs();

} // namespace mlx::core::vulkan
