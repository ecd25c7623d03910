// MLX's events, for versions where they carry no errors: a CPU task that throws
// ends the process, and EventState has the errors of GPU work.
#include "mlx/event.h"

#include <memory>
#include <string>
#include <utility>

#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/scheduler.h"
#include "runtime/device.h"
#include "runtime/recorder.h"

namespace mlx::core {

namespace {

// MLX has no access to an event's implementation; an explicit instantiation may
// name a private member.
const std::shared_ptr<void>& pointer_of(const Event& event);

template <std::shared_ptr<void> Event::*member>
struct Access {
  friend const std::shared_ptr<void>& pointer_of(const Event& event) {
    return event.*member;
  }
};
template struct Access<&Event::event_>;

using State = std::shared_ptr<vulkan::EventState>;

// The error of an event that this CPU stream's thread waited for; its next
// signal fails with it.
thread_local std::string failed;

} // namespace

namespace vulkan {

bool had_cpu_failures() {
  return false;
}

const State& state_of(const Event& event) {
  return *static_cast<const State*>(pointer_of(event).get());
}

} // namespace vulkan

Event::Event(Stream stream) : stream_(stream) {
  event_ = std::make_shared<State>(std::make_shared<vulkan::EventState>());
  if (stream.device == Device::cpu) {
    vulkan::note_cpu_stream(stream);
  }
}

void Event::wait() {
  vulkan::state_of(*this)->wait(value());
  if (auto* d = vulkan::device_if_started()) {
    d->recorder().retirer().retire();
  }
  vulkan::throw_if_failed(*this);
}

void Event::wait(Stream stream) {
  if (stream.device == Device::cpu) {
    auto& state = vulkan::state_of(*this);
    scheduler::enqueue(stream, [state, value = value()] {
      state->wait(value);
      if (auto error = state->error(value); !error.empty()) {
        failed = error;
      }
    });
  } else {
    vulkan::encoder(stream).raw().wait(vulkan::point_of(*this));
  }
}

void Event::signal(Stream stream) {
  auto& state = vulkan::state_of(*this);
  if (stream.device == Device::cpu) {
    scheduler::enqueue(stream, [state, value = value()] {
      state->signal_host(value, std::exchange(failed, {}));
    });
  } else if (vulkan::forked_from_started_device()) {
    // The eval clears up after the exception that a forked child's use throws.
    state->signal_host(value(), {});
  } else {
    state->signal_on(
        vulkan::encoder(stream).raw().current_completion(), value());
  }
}

bool Event::is_signaled() const {
  return vulkan::state_of(*this)->succeeded(value());
}

} // namespace mlx::core
