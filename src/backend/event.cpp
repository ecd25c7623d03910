#include "mlx/event.h"

#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/scheduler.h"
#include "runtime/device.h"
#include "runtime/recorder.h"

namespace mlx::core {

namespace {

struct EventImpl {
  std::shared_ptr<vulkan::EventState> state =
      std::make_shared<vulkan::EventState>();
  std::atomic<Error*> error{nullptr};
  Error own; // of GPU work; `error` may also point to a CPU stream's

  // Turns the failure of a batch into MLX's error, once it is known.
  void collect(uint64_t value) {
    if (error.load()) {
      return;
    }
    if (auto e = state->error(value); !e.empty()) {
      own.set_message(std::make_shared<std::string>(std::move(e)));
      error.store(&own);
    }
  }
};

std::string message_of(const Error* error) {
  Error copy;
  if (copy.store_if_valid(error)) {
    try {
      copy.check();
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  return {};
}

} // namespace

namespace vulkan {

EventPoint point_of(const Event& event) {
  return {event.cast<EventImpl>().state, event.value(), nullptr};
}

void throw_if_failed(const Event& event) {
  auto& state = *event.cast<EventImpl>().state;
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
  if (event.stream().device != mlx::core::Device::cpu || !x.data_shared_ptr()) {
    return;
  }
  if (auto* b = static_cast<Buffer*>(x.data_shared_ptr()->buffer().ptr())) {
    cpu_producers.store(true, std::memory_order_relaxed);
    device().memory().set_cpu_writer(*b, point_of(event));
  }
}

} // namespace vulkan

Event::Event(Stream stream) : stream_(stream) {
  event_ = std::make_shared<EventImpl>();
  if (stream.device == Device::cpu) {
    vulkan::note_cpu_stream(stream);
  }
}

void Event::wait() {
  check_error();
  auto& impl = cast<EventImpl>();
  impl.state->wait(value());
  if (auto* d = vulkan::device_if_started()) {
    d->recorder().retire();
  }
  impl.collect(value());
  check_error();
  vulkan::throw_if_failed(*this); // every time, where MLX's check tells it once
}

void Event::wait(Stream stream) {
  if (stream.device == Device::cpu) {
    scheduler::wait_event(stream, *this, [value = value()](Event& self) {
      auto& impl = self.cast<EventImpl>();
      impl.state->wait(value);
      impl.collect(value);
    });
  } else {
    vulkan::encoder(stream).raw().wait(vulkan::point_of(*this));
  }
}

void Event::signal(Stream stream) {
  if (stream.device == Device::cpu) {
    scheduler::signal_event(stream, *this, [value = value()](Event& self) {
      auto& impl = self.cast<EventImpl>();
      impl.state->signal_host(value, message_of(impl.error.load()));
    });
  } else if (vulkan::forked_from_started_device()) {
    // Eval clears up after the exception that a forked child's use throws.
    auto& impl = cast<EventImpl>();
    impl.state->signal_host(value(), message_of(impl.error.load()));
  } else {
    cast<EventImpl>().state->signal_on(
        vulkan::encoder(stream).raw().current_completion(), value());
  }
}

bool Event::is_signaled() const {
  // Never where what it stands for failed: who waits then gets the error, and
  // nobody takes the array for one that can be read.
  return cast<EventImpl>().state->succeeded(value());
}

std::atomic<Error*>& Event::error() {
  auto& impl = cast<EventImpl>();
  if (impl.state->signaled(value())) {
    impl.collect(value());
  }
  return impl.error;
}

} // namespace mlx::core
