// The Vulkan instance: loader, layers, devices. Free of MLX.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vk/caps.h"
#include "vk/vk.h"

namespace mlx::core::vulkan {

class Instance {
 public:
  // Returns null and sets `why` if there is no loader or no instance.
  static std::unique_ptr<Instance> create(bool validate, std::string& why);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Vk vk;
  VkInstance handle = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> physical;
  std::vector<Caps> caps; // parallel to physical

 private:
  Instance() = default;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

// Result of probing the system. The instance is destroyed afterwards, so that
// importing MLX holds no driver state and a fork is safe.
struct Probe {
  std::string why; // why there is no device to use, or empty
  std::vector<Caps> devices;
  int chosen = -1;
  // The configuration names a missing device: the GPU counts as available, and
  // its first use throws `why` with the list of devices.
  bool bad_choice = false;
};
const Probe& probe();

// Render node in `folder` that this user may not open, with the reason; empty
// if there is none. Drivers do not list such GPUs.
std::string closed_render_node(const std::string& folder = "/dev/dri");

} // namespace mlx::core::vulkan
