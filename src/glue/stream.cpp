#include "glue/stream.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "mlx/backend/gpu/eval.h"
#include "mlx/scheduler.h"
#include "mlx/utils.h"
#include "runtime/device.h"
#include "runtime/recorder.h"

namespace mlx::core {

namespace vulkan {

namespace {

struct Entry {
  Entry(Stream s, Device& d) : raw(d, s.index), encoder(s, raw) {}
  Encoder raw;
  StreamEncoder encoder;
};
using Entries = std::unordered_map<int, std::unique_ptr<Entry>>;

Entries& thread_entries() {
  if (is_main_thread()) {
    static auto* entries = new Entries; // leaked: exit runs in any order
    return *entries;
  }
  static thread_local Entries entries;
  return entries;
}

struct GlobalEntries {
  std::mutex mutex;
  Entries map;
};
GlobalEntries& global_entries() {
  static auto* entries = new GlobalEntries;
  return *entries;
}

Entry& find_entry(Stream s) {
  auto& mine = thread_entries();
  if (auto it = mine.find(s.index); it != mine.end()) {
    return *it->second;
  }
  auto& global = global_entries();
  std::lock_guard lock(global.mutex);
  if (auto it = global.map.find(s.index); it != global.map.end()) {
    return *it->second;
  }
  throw std::runtime_error(
      "[vulkan] There is no Stream(gpu, " + std::to_string(s.index) +
      ") in the current thread. Create the stream in the thread that uses it.");
}

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

StreamEncoder& encoder(Stream s) {
  if (forked_from_started_device()) {
    device(); // throws
  }
  return find_entry(s).encoder;
}

void submit_thread_batches() {
  for (auto& [index, entry] : thread_entries()) {
    entry->raw.close();
  }
}

void synchronize_for_host(Stream s) {
  submit_thread_batches();
  gpu::synchronize(s);
}

} // namespace vulkan

namespace gpu {

void init() {
  vulkan::set_exit_hook(vulkan::drain_cpu_streams);
}

void new_stream(Stream s) {
  auto& d = vulkan::device();
  vulkan::thread_entries().try_emplace(
      s.index, std::make_unique<vulkan::Entry>(s, d));
}

void new_thread_unsafe_stream(Stream s) {
  auto& d = vulkan::device();
  auto& global = vulkan::global_entries();
  std::lock_guard lock(global.mutex);
  global.map.try_emplace(s.index, std::make_unique<vulkan::Entry>(s, d));
}

void finalize(Stream s) {
  if (vulkan::forked_from_started_device()) {
    return;
  }
  vulkan::find_entry(s).raw.close();
}

void synchronize(Stream s) {
  // No thread completes anything here, and nothing was submitted.
  if (vulkan::forked_from_started_device()) {
    return;
  }
  auto& entry = vulkan::find_entry(s);
  auto last = entry.raw.close();
  if (!last) {
    return;
  }
  last->wait();
  vulkan::device().recorder().retire();
  vulkan::device().recorder().wait_retired(*last);
  if (auto e = last->error(); !e.empty()) {
    throw std::runtime_error(e);
  }
}

void clear_streams() {
  vulkan::thread_entries().clear();
  if (is_main_thread()) {
    auto& global = vulkan::global_entries();
    std::lock_guard lock(global.mutex);
    global.map.clear();
  }
}

} // namespace gpu

} // namespace mlx::core
