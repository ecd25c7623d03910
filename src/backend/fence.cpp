#include "backend/fence.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/event.h"
#include "backend/stream.h"

namespace mlx::core::vulkan {

namespace {
thread_local std::vector<std::uintptr_t> fenced_inputs;
// Set once a thread has had such an input, so that others need not look.
std::atomic<bool> had_fenced_inputs{false};
} // namespace

void add_fenced_input(const array& x) {
  had_fenced_inputs.store(true, std::memory_order_relaxed);
  fenced_inputs.push_back(x.id());
}
bool is_fenced_input(const array& x) {
  return std::find(fenced_inputs.begin(), fenced_inputs.end(), x.id()) !=
      fenced_inputs.end();
}
void clear_fenced_inputs() {
  if (had_fenced_inputs.load(std::memory_order_relaxed)) {
    fenced_inputs.clear();
  }
}

void wait_for_fence(
    const FenceState& f,
    Stream s,
    const array& x,
    uint32_t value) {
  Event event = f.event;
  event.set_value(value);
  if (s.device == mlx::core::Device::gpu) {
    follow_cpu_producer(x, event);
    add_fenced_input(x);
  } else if (event.stream().device == mlx::core::Device::gpu) {
    if (auto* buffer = buffer_of(x)) {
      Memory::expect_download(*buffer);
    }
  }
  event.wait(s);
}

uint32_t
update_fence(FenceState& f, Stream s, const array& x, bool cross_device) {
  f.count++;
  f.event.set_value(f.count);
  if (s.device == mlx::core::Device::gpu && cross_device && buffer_of(x)) {
    // The CPU consumer asks for its pointer while encoding; the download must
    // be recorded by then.
    auto& enc = encoder(s).raw();
    enc.copy_to_host(*buffer_of(x));
    f.event.signal(s);
    // Submits at once, so that the CPU stream works while encoding goes on.
    enc.close();
  } else {
    f.event.signal(s);
  }
  return f.count;
}

} // namespace mlx::core::vulkan
