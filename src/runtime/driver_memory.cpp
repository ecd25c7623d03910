#include "runtime/driver_memory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/vma.h"

namespace mlx::core::vulkan {

namespace {

bool is_nvidia(const Caps& caps) {
  return caps.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

} // namespace

DriverMemory::DriverMemory(Device& device) : device_(device) {
  auto& memory = device.caps().memory;
  for (auto& heap : std::span(memory.memoryHeaps, memory.memoryHeapCount)) {
    bool own = heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    heap_ = std::max(heap_, own ? heap.size : 0);
  }
}

VkDeviceSize DriverMemory::block_size() const {
  bool large = is_nvidia(device_.caps()) && heap_ / 64 > (256 << 20);
  return large ? heap_ / 64 : 0;
}

// VMA passes its callbacks to the functions that make and destroy an object.
// These have no functions of their own, so that no driver may see them.
void DriverMemory::replace(VmaVulkanFunctions& f) {
  using Callbacks = const VkAllocationCallbacks*;
  static auto of = [](Callbacks c) -> auto& {
    return *static_cast<DriverMemory*>(c->pUserData);
  };
  f.vkAllocateMemory = [](VkDevice, auto* info, Callbacks c, auto* memory) {
    return of(c).allocate(*info, *memory);
  };
  f.vkFreeMemory = [](VkDevice, VkDeviceMemory memory, Callbacks c) {
    of(c).free(memory);
  };
  f.vkCreateBuffer = [](VkDevice d, auto* info, Callbacks c, auto* buffer) {
    return of(c).device_.vk().vkCreateBuffer(d, info, nullptr, buffer);
  };
  f.vkDestroyBuffer = [](VkDevice d, VkBuffer buffer, Callbacks c) {
    of(c).device_.vk().vkDestroyBuffer(d, buffer, nullptr);
  };
}

bool DriverMemory::release(VkDeviceSize most) {
  std::unique_lock lock(mutex_);
  auto bytes = std::accumulate(
      kept_.begin(), kept_.end(), VkDeviceSize(0), [](auto n, auto& b) {
        return n + b.size;
      });
  std::vector<Block> freed;
  while (bytes > most) {
    bytes -= kept_.front().size;
    freed.push_back(kept_.front());
    kept_.pop_front();
  }
  lock.unlock();
  for (const auto& block : freed) {
    destroy(block);
  }
  return !freed.empty();
}

VkMemoryPropertyFlags DriverMemory::flags(uint32_t type) const {
  return device_.caps().memory.memoryTypes[type].propertyFlags;
}

// Not what VMA may have mapped.
bool DriverMemory::has_buffers(uint32_t type) const {
  constexpr auto local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr auto visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  return is_nvidia(device_.caps()) &&
      (flags(type) & (local | visible)) == local;
}

VkBuffer DriverMemory::buffer_of(VkDeviceMemory block) {
  std::lock_guard lock(mutex_);
  return used_.at(block).buffer;
}

VkResult DriverMemory::call_driver(
    const VkMemoryAllocateInfo& info,
    VkDeviceMemory& memory) {
  std::unique_lock<std::mutex> paused;
  if (is_nvidia(device_.caps()) &&
      flags(info.memoryTypeIndex) & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) {
    paused = device_.pause();
  }
  auto call = [&] {
    return device_.vk().vkAllocateMemory(
        device_.handle(), &info, nullptr, &memory);
  };
  VkResult r = call();
  return r != VK_SUCCESS && release() ? call() : r;
}

VkResult DriverMemory::take_new(
    const VkMemoryAllocateInfo& info,
    Block& block) {
  if (NothingNew::lives) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (!has_buffers(block.type)) {
    return call_driver(info, block.memory);
  }
  auto& vk = device_.vk();
  auto create = array_buffer(block.size);
  VkResult r =
      vk.vkCreateBuffer(device_.handle(), &create, nullptr, &block.buffer);
  if (r != VK_SUCCESS) {
    return r;
  }
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device_.handle(), block.buffer, &needs);
  VkMemoryDedicatedAllocateInfo dedicated{
      VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, info.pNext};
  dedicated.buffer = block.buffer;
  VkMemoryAllocateInfo whole = info;
  whole.pNext = &dedicated;
  whole.allocationSize = needs.size;
  r = call_driver(whole, block.memory);
  if (r == VK_SUCCESS) {
    r = vk.vkBindBufferMemory(device_.handle(), block.buffer, block.memory, 0);
  }
  if (r != VK_SUCCESS) {
    destroy(block);
  }
  return r;
}

void DriverMemory::destroy(const Block& block) {
  auto& vk = device_.vk();
  vk.vkDestroyBuffer(device_.handle(), block.buffer, nullptr);
  vk.vkFreeMemory(device_.handle(), block.memory, nullptr);
}

VkResult DriverMemory::allocate(
    const VkMemoryAllocateInfo& info,
    VkDeviceMemory& memory) {
  Block block{{}, {}, info.memoryTypeIndex, info.allocationSize};
  std::unique_lock lock(mutex_);
  auto same = std::find_if(kept_.begin(), kept_.end(), [&](const Block& b) {
    return b.type == block.type && b.size == block.size;
  });
  if (same != kept_.end()) {
    block = *same;
    kept_.erase(same);
  } else {
    lock.unlock();
    if (VkResult r = take_new(info, block); r != VK_SUCCESS) {
      return r;
    }
    lock.lock();
  }
  memory = block.memory;
  if (block.buffer) {
    used_.emplace(memory, block);
  }
  return VK_SUCCESS;
}

void DriverMemory::free(VkDeviceMemory memory) {
  std::unique_lock lock(mutex_);
  auto it = used_.find(memory);
  if (it == used_.end()) {
    lock.unlock();
    device_.vk().vkFreeMemory(device_.handle(), memory, nullptr);
    return;
  }
  kept_.push_back(it->second);
  used_.erase(it);
  lock.unlock();
  release(heap_ / 16);
}

} // namespace mlx::core::vulkan
