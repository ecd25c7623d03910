#include "ranks/shared_memory.h"

#include <string>

#include "runtime/device.h"

namespace mlx::core::vulkan {

namespace {

constexpr auto from_host =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

// A coherent type of `bits`, or -1; if possible one that the host caches, since
// an H200 reads stale data from the other kind until its submission ends.
int coherent_type(const Caps& caps, uint32_t bits) {
  constexpr VkMemoryPropertyFlags needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  int found = -1;
  for (uint32_t i = 0; i < caps.memory.memoryTypeCount; ++i) {
    auto flags = caps.memory.memoryTypes[i].propertyFlags;
    if ((bits >> i & 1) && (flags & needed) == needed) {
      if (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) {
        return static_cast<int>(i);
      }
      found = found < 0 ? static_cast<int>(i) : found;
    }
  }
  return found;
}

VkBuffer create_buffer(const Vk& vk, VkDevice device, size_t size) {
  VkExternalMemoryBufferCreateInfo external{
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = from_host;
  auto info = array_buffer(size);
  info.pNext = &external;
  VkBuffer buffer = VK_NULL_HANDLE;
  vk_check(
      vk.vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  return buffer;
}

VkDeviceMemory
import_memory(const Device& device, VkBuffer buffer, void* host, size_t size) {
  VkMemoryHostPointerPropertiesEXT can{
      VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  auto& vk = device.vk();
  auto ask = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      vk.vkGetDeviceProcAddr(
          device.handle(), "vkGetMemoryHostPointerPropertiesEXT"));
  vk_check(
      ask(device.handle(), from_host, host, &can),
      "vkGetMemoryHostPointerPropertiesEXT");
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device.handle(), buffer, &needs);
  int type =
      coherent_type(device.caps(), can.memoryTypeBits & needs.memoryTypeBits);
  if (type < 0 || needs.size > size) {
    throw VkError(
        "[vulkan] " + device.caps().name +
            " has no coherent memory type for imported host memory",
        VK_ERROR_FEATURE_NOT_PRESENT);
  }
  VkImportMemoryHostPointerInfoEXT import{
      VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  import.handleType = from_host;
  import.pHostPointer = host;
  VkMemoryAllocateFlagsInfo flags{
      VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, &import};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  info.allocationSize = size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  vk_check(
      vk.vkAllocateMemory(device.handle(), &info, nullptr, &memory),
      "vkAllocateMemory",
      " of imported host memory");
  return memory;
}

} // namespace

Buffer* import_host(Device& device, void* host, size_t size) {
  auto& caps = device.caps();
  if (!caps.external_memory_host) {
    throw VkError(
        "[vulkan] " + caps.name + " has no VK_EXT_external_memory_host",
        VK_ERROR_EXTENSION_NOT_PRESENT);
  }
  if (size % caps.host_import_alignment != 0 ||
      reinterpret_cast<uintptr_t>(host) % caps.host_import_alignment != 0) {
    throw VkError(
        "[vulkan] " + caps.name + " imports host memory in blocks of " +
            std::to_string(caps.host_import_alignment) + " bytes only",
        VK_ERROR_INVALID_EXTERNAL_HANDLE);
  }
  auto& vk = device.vk();
  VkBuffer buffer = create_buffer(vk, device.handle(), size);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  try {
    memory = import_memory(device, buffer, host, size);
    vk_check(
        vk.vkBindBufferMemory(device.handle(), buffer, memory, 0),
        "vkBindBufferMemory");
  } catch (...) {
    vk.vkDestroyBuffer(device.handle(), buffer, nullptr);
    vk.vkFreeMemory(device.handle(), memory, nullptr);
    throw;
  }
  return device.memory().adopt(buffer, host, size);
}

} // namespace mlx::core::vulkan
