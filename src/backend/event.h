// The runtime's side of MLX's events.
#pragma once

#include "mlx/array.h"
#include "mlx/event.h"
#include "runtime/timeline.h"

namespace mlx::core::vulkan {

// The event's state, which its constructor makes (src/versions).
const std::shared_ptr<EventState>& state_of(const Event& event);

// The event at its current value.
EventPoint point_of(const Event& event);

// The number of the eval that attaches the event; without an event, that of
// this thread's last eval that attaches none.
uint64_t number_of(const Event& event);
void begin_eval_without_events();

// Throws std::runtime_error with the reason if what the event stands for
// failed, as far as is known.
void throw_if_failed(const Event& event);

// Whether an event of a CPU stream has failed in this process.
bool had_cpu_failures();

// Before a GPU stream uses `x`, which a CPU stream is still computing: makes
// the host copy the one that counts. No-op for events of GPU streams.
void follow_cpu_producer(const array& x, const Event& event);
// It has done so once in this process: before that no buffer awaits a CPU
// stream.
bool had_cpu_producers();

// Inputs that Fence::wait has seen on this thread for the gpu::eval that
// follows: their event, if any, is only signalled at the end of the eval and
// must not be taken for their producer's.
void add_fenced_input(const array& x);
bool is_fenced_input(const array& x);
void clear_fenced_inputs();

} // namespace mlx::core::vulkan
