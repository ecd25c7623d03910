// MLX's events, for versions where they carry the errors of CPU tasks.
#include "mlx/event.h"

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

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

  // Turns a known failure of a batch into MLX's error. MLX clears a CPU
  // stream's error once a waiter got it.
  void collect(uint64_t value) {
    if (auto* e = error.load(); e && e->valid()) {
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

// The signals of CPU streams. MLX clears a stream's error when a waiter gets
// it; signals encoded before that fail all the same, because their work may
// have read results that were never written.
class CpuSignals {
 public:
  uint64_t add(int stream) {
    std::lock_guard lock(mutex_);
    return ++streams_[stream].given;
  }
  // The error of the n-th signal; `known`: the error that MLX still has.
  std::string error_of(int stream, uint64_t n, std::string known) {
    std::lock_guard lock(mutex_);
    auto& s = streams_[stream];
    if (!known.empty()) {
      failed_.store(true, std::memory_order_relaxed);
      s.failed = s.given;
      s.error = known;
    }
    return n <= s.failed ? s.error : std::string();
  }
  bool any_failed() const {
    return failed_.load(std::memory_order_relaxed);
  }

 private:
  struct OfStream {
    uint64_t given = 0;
    uint64_t failed = 0; // up to this one
    std::string error;
  };
  std::mutex mutex_;
  std::unordered_map<int, OfStream> streams_;
  std::atomic<bool> failed_{false};
};

CpuSignals& cpu_signals() { // leaked: CPU streams outlive statics
  static auto* signals = new CpuSignals;
  return *signals;
}

} // namespace

namespace vulkan {

bool had_cpu_failures() {
  return cpu_signals().any_failed();
}

const std::shared_ptr<EventState>& state_of(const Event& event) {
  return event.cast<EventImpl>().state;
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
    d->recorder().retirer().retire();
  }
  impl.collect(value());
  check_error();
  vulkan::throw_if_failed(*this); // at each call; MLX's check throws only once
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
    auto n = cpu_signals().add(stream.index);
    auto task = [value = value(), index = stream.index, n](Event& self) {
      auto& impl = self.cast<EventImpl>();
      auto known = message_of(impl.error.load());
      impl.state->signal_host(
          value, cpu_signals().error_of(index, n, std::move(known)));
    };
    scheduler::signal_event(stream, *this, std::move(task));
  } else if (vulkan::forked_from_started_device()) {
    // The eval clears up after the exception that a forked child's use throws.
    auto& impl = cast<EventImpl>();
    impl.state->signal_host(value(), message_of(impl.error.load()));
  } else {
    cast<EventImpl>().state->signal_on(
        vulkan::encoder(stream).raw().current_completion(), value());
  }
}

bool Event::is_signaled() const {
  // False if the work before the event failed: waiters then get the error, and
  // the array is not taken for readable.
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
