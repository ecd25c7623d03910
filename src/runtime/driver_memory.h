// Device memory, as VMA takes it from the driver. NVIDIA's device must be idle
// while it is given new memory (docs/dev/driver-bugs.md), and 1 GiB takes 13
// ms. There VMA's blocks are large, and up to a sixteenth of the memory stays
// when VMA frees it, for VMA's next blocks. Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <unordered_map>

#include "vk/vk.h"

struct VmaVulkanFunctions;

namespace mlx::core::vulkan {

class Device;

class DriverMemory {
 public:
  explicit DriverMemory(Device& device);
  ~DriverMemory();
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;

  // Size for VMA's blocks in large heaps; 0: VMA's own, 256 MiB.
  VkDeviceSize block_size() const;
  // Sets the functions that VMA must call instead of the driver's.
  static void replace(VmaVulkanFunctions& functions);
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
    VkDeviceMemory memory;
    uint32_t type;
    VkDeviceSize size;
  };
  // What VMA calls.
  VkResult allocate(const VkMemoryAllocateInfo& info, VkDeviceMemory& memory);
  void free(VkDeviceMemory memory);
  VkResult take_new(const VkMemoryAllocateInfo& info, VkDeviceMemory& memory);
  VkMemoryPropertyFlags flags(uint32_t type) const;
  bool can_keep(const VkMemoryAllocateInfo& info) const;

  Device& device_;
  VkDeviceSize heap_ = 0; // bytes of the device's largest heap
  std::mutex mutex_;
  // Under mutex_: blocks that VMA has, and kept ones, oldest first.
  std::unordered_map<VkDeviceMemory, Block> used_;
  std::deque<Block> kept_;
};

} // namespace mlx::core::vulkan
