#include "mlx/backend/gpu/device_info.h"

#include "runtime/memory_types.h"
#include "vk/config.h"
#include "vk/instance.h"

namespace mlx::core::gpu {

bool is_available() {
  const auto& p = vulkan::probe();
  // A bad MLX_VK_DEVICE must not silently become the CPU: the first use of the
  // GPU throws the list of devices.
  return p.chosen >= 0 || p.bad_choice;
}

int device_count() {
  return is_available() ? 1 : 0;
}

const std::unordered_map<std::string, std::variant<std::string, size_t>>&
device_info(int index) {
  using Map =
      std::unordered_map<std::string, std::variant<std::string, size_t>>;
  static const Map empty;
  static const Map info = [] {
    Map m;
    const auto& p = vulkan::probe();
    if (p.chosen < 0) {
      return m;
    }
    const auto& caps = p.devices[p.chosen];
    // The measured speed of host reads changes no sizes.
    auto types = vulkan::choose_memory_types(
        caps.memory, caps.type, vulkan::config().memory);
    size_t heap = vulkan::heap_bytes(caps.memory, types.device);
    m["device_name"] = caps.name;
    m["architecture"] = std::string("vulkan-") + vulkan::type_name(caps.type);
    m["driver"] = caps.driver;
    m["uuid"] = caps.uuid;
    m["memory_size"] = heap;
    m["total_memory"] = heap;
    m["max_recommended_working_set_size"] = heap / 100 * 95;
    m["max_buffer_length"] = static_cast<size_t>(caps.max_buffer_size);
    m["resource_limit"] = static_cast<size_t>(1) << 20;
    return m;
  }();
  return index == 0 ? info : empty;
}

} // namespace mlx::core::gpu
