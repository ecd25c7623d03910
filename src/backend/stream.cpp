#include "backend/stream.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "mlx/backend/gpu/eval.h"
#include "mlx/memory.h"
#include "mlx/scheduler.h"
#include "mlx/utils.h"
#include "runtime/device.h"
#include "runtime/recorder.h"
#include "runtime/staging.h"

namespace mlx::core {

namespace vulkan {

namespace {

thread_local Placement placement = Placement::Host;

// MLX's own list of streams may be gone at exit.
struct CpuStreams {
  std::mutex mutex;
  std::unordered_map<int, Stream> map;
};
CpuStreams& cpu_streams() {
  static auto* streams = new CpuStreams;
  return *streams;
}

// A CPU stream may still be writing memory that the driver unmaps at exit: MLX
// joins its threads later than that. Bounded, as a stream may wait for work
// that was never submitted.
void drain_cpu_streams() {
  struct Left {
    std::mutex mutex;
    std::condition_variable cv;
    int count = 0;
  };
  auto left = std::make_shared<Left>();
  std::lock_guard streams_lock(cpu_streams().mutex);
  for (auto& [index, s] : cpu_streams().map) {
    auto done = [left] {
      std::lock_guard lock(left->mutex);
      left->count--;
      left->cv.notify_all();
    };
    {
      std::lock_guard lock(left->mutex);
      left->count++;
    }
    // The first call may throw, and clear, the error of earlier work.
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        scheduler::enqueue(s, done);
        break;
      } catch (const std::exception&) {
        if (attempt == 1) {
          done();
        }
      }
    }
  }
  std::unique_lock lock(left->mutex);
  left->cv.wait_for(
      lock, std::chrono::seconds(10), [&] { return left->count == 0; });
}

} // namespace

PlacementScope::PlacementScope(Placement p) : before_(placement) {
  placement = p;
}
PlacementScope::~PlacementScope() {
  placement = before_;
}
Placement current_placement() {
  return placement;
}

void note_cpu_stream(Stream s) {
  thread_local int last = -1;
  if (s.index != last) {
    last = s.index;
    auto& streams = cpu_streams();
    std::lock_guard lock(streams.mutex);
    streams.map.emplace(s.index, s);
  }
}

} // namespace vulkan

namespace gpu {

void init() {
  vulkan::set_exit_hook([] {
    vulkan::drain_cpu_streams();
    // Files that are being read into memory that the driver unmaps.
    vulkan::device().staging().drain(std::chrono::seconds(10));
    vulkan::stop_memory_cache();
  });
}

void finalize(Stream s) {
  if (vulkan::forked_from_started_device()) {
    return;
  }
  vulkan::encoder(s).raw().close();
  // Evals without a waiter keep their memory until the device has finished.
  if (get_active_memory() > get_memory_limit()) {
    vulkan::device().finish_submitted();
  }
}

void synchronize(Stream s) {
  // In a forked child no thread completes work, and nothing was submitted.
  if (vulkan::forked_from_started_device()) {
    return;
  }
  auto last = vulkan::encoder(s).raw().close();
  if (!last) {
    return;
  }
  vulkan::device().recorder().retirer().wait_retired(*last);
  if (auto e = last->error(); !e.empty()) {
    throw std::runtime_error(e);
  }
}

} // namespace gpu

} // namespace mlx::core
