#include "vk/features.h"

#include <cstring>

namespace mlx::core::vulkan {

DeviceFeatures::DeviceFeatures(const Known& known) {
  append(f11);
  append(f12);
  if (known.matrices) {
    append(matrices);
  }
  if (known.bf16) {
    append(bf16);
  }
  if (known.dot) {
    append(dot);
  }
  if (known.sizes) {
    append(sizes);
  }
}

VkDevice create_device(
    const Vk& vk,
    VkPhysicalDevice physical,
    const Caps& caps,
    const DeviceFeatures& features,
    const std::vector<const char*>& extensions) {
  float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = caps.compute_queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto names = extensions_to_enable(caps);
  names.insert(names.end(), extensions.begin(), extensions.end());
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.all};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  VkDevice device = VK_NULL_HANDLE;
  vk_check(
      vk.vkCreateDevice(physical, &info, nullptr, &device),
      "vkCreateDevice",
      " on " + caps.name);
  return device;
}

bool radv_bfloat16(const char* (*get)(const char*)) {
  for (const char* name : {"RADV_EXPERIMENTAL", "RADV_PERFTEST"}) {
    const char* words = get(name);
    if (words && std::strstr(words, "bfloat16")) {
      return true;
    }
  }
  return false;
}

} // namespace mlx::core::vulkan
