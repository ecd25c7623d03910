#include "mlx/fence.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/event.h"
#include "backend/stream.h"
#include "mlx/event.h"

namespace mlx::core {

namespace {
struct FenceImpl {
  explicit FenceImpl(Stream s) : event(s) {}
  uint32_t count = 0;
  Event event;
};

vulkan::Buffer* buffer_of(const array& x) { // null if it has no items
  auto& data = x.data_shared_ptr();
  return data ? static_cast<vulkan::Buffer*>(data->buffer().ptr()) : nullptr;
}

thread_local std::vector<std::uintptr_t> fenced_inputs;
// Some thread has had one: spares the others to look.
std::atomic<bool> had_fenced_inputs{false};
} // namespace

namespace vulkan {
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
} // namespace vulkan

Fence::Fence(Stream s) {
  fence_ = std::make_shared<FenceImpl>(s);
}

void Fence::wait(Stream s, const array& x, uint32_t value) {
  Event event = cast<FenceImpl>().event;
  event.set_value(value);
  if (s.device == Device::gpu) {
    vulkan::follow_cpu_producer(x, event);
    vulkan::add_fenced_input(x);
  } else if (event.stream().device == Device::gpu) {
    if (auto* buffer = buffer_of(x)) {
      vulkan::Memory::expect_download(*buffer);
    }
  }
  event.wait(s);
}

uint32_t Fence::update(Stream s, const array& x, bool cross_device) {
  auto& f = cast<FenceImpl>();
  f.count++;
  f.event.set_value(f.count);
  if (s.device == Device::gpu && cross_device && buffer_of(x)) {
    // The CPU consumer asks for its pointer while encoding: the copy it will
    // find there has to be on its way by then.
    auto& encoder = vulkan::encoder(s).raw();
    encoder.copy_to_host(*buffer_of(x));
    f.event.signal(s);
    // Start at once, so that the CPU stream works while we encode on.
    encoder.close();
  } else {
    f.event.signal(s);
  }
  return f.count;
}

} // namespace mlx::core
