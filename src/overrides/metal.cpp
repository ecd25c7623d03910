// MLX's questions to Metal. With MLX_VK_METAL_KERNELS=1 Metal is there, so that
// libraries which ask take their Metal kernels (ops/custom); what else Metal
// has is answered as far as it means anything here.
#include "mlx/backend/metal/metal.h"

#include <stdexcept>

#include "mlx/backend/gpu/device_info.h"

#include "vk/config.h"

namespace mlx::core::metal {

bool is_available() {
  return vulkan::config().metal_kernels && gpu::is_available();
}

void start_capture(std::string path) {
  if (is_available()) {
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
