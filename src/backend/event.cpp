#include "backend/event.h"

#include <atomic>
#include <stdexcept>

#include "backend/stream_encoder.h"
#include "runtime/device.h"

namespace mlx::core::vulkan {

EventPoint point_of(const Event& event) {
  return {state_of(event), event.value(), nullptr};
}

namespace {
thread_local uint64_t without_events = 0;
} // namespace

uint64_t number_of(const Event& event) {
  return event.valid() ? state_of(event)->number : without_events;
}

void begin_eval_without_events() {
  without_events = EventState().number;
}

void throw_if_failed(const Event& event) {
  auto& state = *state_of(event);
  if (auto e = state.error(event.value()); !e.empty()) {
    throw std::runtime_error(e);
  }
}

namespace {
std::atomic<bool> cpu_producers{false};
} // namespace

bool had_cpu_producers() {
  return cpu_producers.load(std::memory_order_relaxed);
}

void follow_cpu_producer(const array& x, const Event& event) {
  if (event.stream().device != mlx::core::Device::cpu) {
    return;
  }
  if (auto* b = buffer_of(x)) {
    cpu_producers.store(true, std::memory_order_relaxed);
    device().memory().set_cpu_writer(*b, point_of(event));
  }
}

} // namespace mlx::core::vulkan
