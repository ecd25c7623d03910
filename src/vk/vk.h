// Vulkan functions in a table loaded at run time, so that libmlx works without
// an installed loader and tests can substitute a fake device. Free of MLX.
#pragma once

#include <stdexcept>
#include <string>

#include <vulkan/vulkan.h>

namespace mlx::core::vulkan {

// X(name) for functions found without an instance, from an instance, and from a
// device.
#define MLXVK_GLOBAL_FUNCTIONS(X)           \
  X(vkCreateInstance)                       \
  X(vkEnumerateInstanceVersion)             \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkEnumerateInstanceLayerProperties)

#define MLXVK_INSTANCE_FUNCTIONS(X)           \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

// Optional functions: null if the instance does not offer them.
#define MLXVK_OPTIONAL_INSTANCE_FUNCTIONS(X) \
  X(vkCreateDebugUtilsMessengerEXT)          \
  X(vkDestroyDebugUtilsMessengerEXT)         \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define MLXVK_DEVICE_FUNCTIONS(X)  \
  X(vkDestroyDevice)               \
  X(vkGetDeviceQueue)              \
  X(vkDeviceWaitIdle)              \
  X(vkQueueSubmit)                 \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkBindBufferMemory)            \
  X(vkGetBufferDeviceAddress)      \
  X(vkCreateSemaphore)             \
  X(vkDestroySemaphore)            \
  X(vkGetSemaphoreCounterValue)    \
  X(vkWaitSemaphores)              \
  X(vkCreateCommandPool)           \
  X(vkDestroyCommandPool)          \
  X(vkAllocateCommandBuffers)      \
  X(vkFreeCommandBuffers)          \
  X(vkBeginCommandBuffer)          \
  X(vkEndCommandBuffer)            \
  X(vkCmdBindPipeline)             \
  X(vkCmdPushConstants)            \
  X(vkCmdDispatch)                 \
  X(vkCmdDispatchBase)             \
  X(vkCmdCopyBuffer)               \
  X(vkCmdSetEvent)                 \
  X(vkCreateEvent)                 \
  X(vkDestroyEvent)                \
  X(vkGetEventStatus)              \
  X(vkResetEvent)                  \
  X(vkCmdPipelineBarrier)          \
  X(vkCmdResetQueryPool)           \
  X(vkCmdWriteTimestamp)           \
  X(vkCreateQueryPool)             \
  X(vkDestroyQueryPool)            \
  X(vkGetQueryPoolResults)         \
  X(vkResetQueryPool)              \
  X(vkCreateShaderModule)          \
  X(vkDestroyShaderModule)         \
  X(vkCreatePipelineLayout)        \
  X(vkDestroyPipelineLayout)       \
  X(vkCreateComputePipelines)      \
  X(vkDestroyPipeline)             \
  X(vkCreatePipelineCache)         \
  X(vkGetPipelineCacheData)        \
  X(vkMergePipelineCaches)         \
  X(vkDestroyPipelineCache)

struct Vk {
#define MLXVK_MEMBER(name) PFN_##name name = nullptr;
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  MLXVK_GLOBAL_FUNCTIONS(MLXVK_MEMBER)
  MLXVK_INSTANCE_FUNCTIONS(MLXVK_MEMBER)
  MLXVK_OPTIONAL_INSTANCE_FUNCTIONS(MLXVK_MEMBER)
  MLXVK_DEVICE_FUNCTIONS(MLXVK_MEMBER)
#undef MLXVK_MEMBER

  // False, with `why` set, if a function is missing.
  bool load_global(PFN_vkGetInstanceProcAddr get, std::string& why);
  bool load_instance(VkInstance instance, std::string& why);
  bool load_device(VkDevice device, std::string& why);
};

// vkGetInstanceProcAddr of the system's loader (libvulkan.so.1, opened once,
// never closed); null if there is none. Tests override it.
PFN_vkGetInstanceProcAddr system_loader();
void set_loader_for_tests(PFN_vkGetInstanceProcAddr get);

const char* result_name(VkResult result);

// A Vulkan call that failed.
class VkError : public std::runtime_error {
 public:
  VkError(const std::string& message, VkResult result)
      : std::runtime_error(message), result(result) {}
  VkResult result;
};

// Throws VkError "[vulkan] <call>: <result><context>" unless VK_SUCCESS.
void vk_check(
    VkResult result,
    const char* call,
    const std::string& context = "");

} // namespace mlx::core::vulkan
