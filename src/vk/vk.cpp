#include "vk/vk.h"

#include <dlfcn.h>

#include <atomic>

namespace mlx::core::vulkan {

bool Vk::load_global(PFN_vkGetInstanceProcAddr get, std::string& why) {
  vkGetInstanceProcAddr = get;
#define MLXVK_LOAD(name)                                    \
  name = reinterpret_cast<PFN_##name>(get(nullptr, #name)); \
  if (!name) {                                              \
    why = "the Vulkan loader has no " #name " (too old?)";  \
    return false;                                           \
  }
  MLXVK_GLOBAL_FUNCTIONS(MLXVK_LOAD)
#undef MLXVK_LOAD
  return true;
}

bool Vk::load_instance(VkInstance instance, std::string& why) {
#define MLXVK_LOAD(name)                                                       \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name)); \
  if (!name) {                                                                 \
    why = "the Vulkan instance has no " #name;                                 \
    return false;                                                              \
  }
  MLXVK_INSTANCE_FUNCTIONS(MLXVK_LOAD)
#undef MLXVK_LOAD
#define MLXVK_LOAD(name) \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name));
  MLXVK_OPTIONAL_INSTANCE_FUNCTIONS(MLXVK_LOAD)
#undef MLXVK_LOAD
  return true;
}

bool Vk::load_device(VkDevice device, std::string& why) {
#define MLXVK_LOAD(name)                                                   \
  name = reinterpret_cast<PFN_##name>(vkGetDeviceProcAddr(device, #name)); \
  if (!name) {                                                             \
    why = "the Vulkan device has no " #name;                               \
    return false;                                                          \
  }
  MLXVK_DEVICE_FUNCTIONS(MLXVK_LOAD)
#undef MLXVK_LOAD
  return true;
}

namespace {
std::atomic<PFN_vkGetInstanceProcAddr> test_loader{nullptr};
} // namespace

void set_loader_for_tests(PFN_vkGetInstanceProcAddr get) {
  test_loader = get;
}

PFN_vkGetInstanceProcAddr system_loader() {
  if (auto get = test_loader.load()) {
    return get;
  }
  static PFN_vkGetInstanceProcAddr get = [] {
    void* lib = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
      lib = dlopen("libvulkan.so", RTLD_NOW | RTLD_LOCAL);
    }
    return lib ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(
                     dlsym(lib, "vkGetInstanceProcAddr"))
               : nullptr;
  }();
  return get;
}

const char* result_name(VkResult result) {
  switch (result) {
#define MLXVK_CASE(name) \
  case name:             \
    return #name + 3
    MLXVK_CASE(VK_SUCCESS);
    MLXVK_CASE(VK_NOT_READY);
    MLXVK_CASE(VK_TIMEOUT);
    MLXVK_CASE(VK_INCOMPLETE);
    MLXVK_CASE(VK_ERROR_OUT_OF_HOST_MEMORY);
    MLXVK_CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    MLXVK_CASE(VK_ERROR_INITIALIZATION_FAILED);
    MLXVK_CASE(VK_ERROR_DEVICE_LOST);
    MLXVK_CASE(VK_ERROR_MEMORY_MAP_FAILED);
    MLXVK_CASE(VK_ERROR_LAYER_NOT_PRESENT);
    MLXVK_CASE(VK_ERROR_EXTENSION_NOT_PRESENT);
    MLXVK_CASE(VK_ERROR_FEATURE_NOT_PRESENT);
    MLXVK_CASE(VK_ERROR_INCOMPATIBLE_DRIVER);
    MLXVK_CASE(VK_ERROR_TOO_MANY_OBJECTS);
    MLXVK_CASE(VK_ERROR_FRAGMENTED_POOL);
    MLXVK_CASE(VK_ERROR_INVALID_SHADER_NV);
#undef MLXVK_CASE
    default:
      return "an unknown error";
  }
}

void vk_check(VkResult result, const char* call, const std::string& context) {
  if (result != VK_SUCCESS) {
    throw VkError(
        std::string("[vulkan] ") + call + ": " + result_name(result) + context,
        result);
  }
}

} // namespace mlx::core::vulkan
