// Replaces namespace metal of no_metal.cpp. is_available() is false, since with
// true, arrays would report Metal as their DLPack device; Python code that asks
// before it makes kernels gets its answer from python/_mlx_vulkan.py. With
// MLX_VK_METAL_KERNELS=1, that code may call start_capture(), stop_capture(),
// device_info(), set_metallib_path() and get_metallib_path(), which answer for
// Vulkan.
//
// What MLX could offer: docs/dev/upstream.md, "Kernels in Metal's language".
#include "mlx/backend/metal/metal.h"

#include <stdexcept>

#include "mlx/backend/gpu/device_info.h"

#include "vk/config.h"

namespace mlx::core::metal {

bool is_available() {
  return false;
}

void start_capture(std::string path) {
  if (vulkan::config().metal_kernels) {
    throw std::runtime_error(
        "[metal::start_capture] " + path +
        ": Vulkan has no Metal capture. MLX_VK_PROFILE=trace.json writes a "
        "trace of the process's kernels.");
  }
}

void stop_capture() {}

const std::unordered_map<std::string, std::variant<std::string, size_t>>&
device_info() {
  return gpu::device_info(0);
}

void set_metallib_path(const std::string&) {}

const std::string& get_metallib_path() {
  throw std::runtime_error(
      "[metal::get_metallib_path] The Vulkan backend has no Metal library; its "
      "kernels are in libmlx itself.");
}

} // namespace mlx::core::metal
