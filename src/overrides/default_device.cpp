// Replaces default_device(), set_default_device() and default_stream(): errors.
//
// MLX does not say why there is no GPU, and a device index that does not exist
// ends in std::out_of_range. Here errors name the device and the cause, and a
// process that falls back to the CPU gets one notice.
//
// What MLX could offer: docs/dev/upstream.md, "Reasons why there is no GPU".
#include "overrides/default_device.h"

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "mlx/backend/cpu/device_info.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/device.h"
#include "mlx/stream.h"
#include "vk/config.h"
#include "vk/instance.h"

namespace mlx::core {

// MLX's own functions, whose files are compiled with these names
// (cmake/mlx.cmake).
const Device& default_device_of_mlx();
void set_default_device_of_mlx(const Device& d);
Stream default_stream_of_mlx(Device d);

namespace {

// Whether the CPU is the default device for want of a GPU.
enum class State { Unknown, OnCpu, Told };
std::atomic<State> state{State::Unknown};

void require(const Device& d, const char* call) {
  bool gpu = d == Device::gpu;
  if (gpu && !gpu::is_available()) {
    throw std::invalid_argument(
        std::string(call) + " There is no GPU to use: " + vulkan::probe().why +
        ". `mlx-vulkan doctor` says what to do.");
  }
  int count = gpu ? gpu::device_count() : cpu::device_count();
  if (d.index < 0 || d.index >= count) {
    const char* name = gpu ? "gpu" : "cpu";
    throw std::invalid_argument(
        std::string(call) + " Device(" + name + ", " + std::to_string(d.index) +
        ") does not exist: a process has " + std::to_string(count) + " " +
        name + " device" + (count == 1 ? "" : "s") + "." +
        (gpu ? " MLX_VK_DEVICE chooses which GPU that is." : ""));
  }
}

} // namespace

const Device& default_device() {
  if (state.load(std::memory_order_relaxed) == State::Unknown) {
    state = gpu::is_available() || vulkan::config().off ? State::Told
                                                        : State::OnCpu;
  }
  return default_device_of_mlx();
}

void set_default_device(const Device& d) {
  require(d, "[set_default_device]");
  if (d == Device::cpu) {
    state = State::Told;
  }
  set_default_device_of_mlx(d);
}

Stream default_stream(Device d) {
  require(d, "[default_stream]");
  return default_stream_of_mlx(d);
}

namespace vulkan {

void tell_if_on_cpu() {
  auto before = State::OnCpu;
  if (state.load(std::memory_order_relaxed) == State::OnCpu &&
      state.compare_exchange_strong(before, State::Told)) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] MLX runs on the CPU: %s. `mlx-vulkan doctor` says what to "
        "do; MLX_VK=0 hides this line.\n",
        probe().why.c_str());
  }
}

} // namespace vulkan

} // namespace mlx::core
