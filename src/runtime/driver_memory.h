// Device memory, as VMA takes it from the driver. NVIDIA's card must be idle
// while it is given new memory (docs/dev/driver-bugs.md), and 1 GiB takes 25
// ms, or 2 ms if it is dedicated to one buffer. So there a block is one buffer,
// of which arrays are parts. Blocks are large, and up to a sixteenth of the
// memory stays when VMA frees it, for VMA's next blocks. Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <unordered_map>

#include "vk/vk.h"

struct VmaVulkanFunctions;

namespace mlx::core::vulkan {

class Device;

// A buffer of one or more arrays.
inline VkBufferCreateInfo array_buffer(VkDeviceSize size) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
      VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  return info;
}

class DriverMemory {
 public:
  explicit DriverMemory(Device& device);
  ~DriverMemory() {
    release();
  }
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;

  // Size for VMA's blocks in large heaps; 0: VMA's own, 256 MiB.
  VkDeviceSize block_size() const;
  // Whether blocks of this memory type are buffers.
  bool has_buffers(uint32_t type) const;
  // That of a block which VMA has.
  VkBuffer buffer_of(VkDeviceMemory block);
  // Sets the functions that VMA must call instead of the driver's, with
  // callbacks().
  static void replace(VmaVulkanFunctions& functions);
  VkAllocationCallbacks callbacks() {
    VkAllocationCallbacks c{};
    c.pUserData = this;
    return c;
  }
  // Frees kept blocks, oldest first, until at most `most` bytes stay. Returns
  // whether it freed any.
  bool release(VkDeviceSize most = 0);
  // While one lives, its thread gets no new memory of the driver.
  struct NothingNew {
    NothingNew() {
      lives = true;
    }
    ~NothingNew() {
      lives = false;
    }
    static inline thread_local bool lives = false;
  };

 private:
  struct Block {
    VkBuffer buffer; // or null
    VkDeviceMemory memory;
    uint32_t type;
    VkDeviceSize size;
  };
  // What VMA calls.
  VkResult allocate(const VkMemoryAllocateInfo& info, VkDeviceMemory& memory);
  void free(VkDeviceMemory memory);
  VkResult take_new(const VkMemoryAllocateInfo& info, Block& block);
  VkResult call_driver(
      const VkMemoryAllocateInfo& info,
      VkDeviceMemory& memory);
  void destroy(const Block& block);
  VkMemoryPropertyFlags flags(uint32_t type) const;

  Device& device_;
  VkDeviceSize heap_ = 0; // bytes of the device's largest heap
  std::mutex mutex_;
  // Under mutex_: blocks with buffers that VMA has, and kept ones, oldest
  // first.
  std::unordered_map<VkDeviceMemory, Block> used_;
  std::deque<Block> kept_;
};

} // namespace mlx::core::vulkan
