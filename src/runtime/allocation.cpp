#include "runtime/allocation.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/device.h"
#include "runtime/vma.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// What red zones and fresh arrays of the guard mode are filled with: a NaN in
// f16, bf16 and f32.
constexpr uint8_t poison = 0xff;
constexpr size_t red_zone = 512;

constexpr VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

std::string mib(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

} // namespace

MemoryTypes choose_memory_types(
    const VkPhysicalDeviceMemoryProperties& p,
    bool discrete_gpu,
    int forced) {
  constexpr VkMemoryPropertyFlags device = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  // The type with all `need`, most of `like`, none of `avoid` if possible.
  auto find = [&](VkMemoryPropertyFlags need,
                  VkMemoryPropertyFlags like,
                  VkMemoryPropertyFlags avoid) {
    constexpr VkMemoryPropertyFlags never = VK_MEMORY_PROPERTY_PROTECTED_BIT |
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
        VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
    int best = -1, best_score = -100;
    for (uint32_t i = 0; i < p.memoryTypeCount; ++i) {
      auto f = p.memoryTypes[i].propertyFlags;
      if ((f & need) != need || (f & never)) {
        continue;
      }
      int score =
          4 * __builtin_popcount(f & like) - 2 * __builtin_popcount(f & avoid);
      if (score > best_score) {
        best = static_cast<int>(i);
        best_score = score;
      }
    }
    return best;
  };
  MemoryTypes t;
  int shared = find(device | host, cached, 0);
  t.unified = forced == 1 || (forced == 0 && shared >= 0 && !discrete_gpu);
  if (t.unified && shared < 0) {
    // No such type: plain host memory is addressable too, only slower.
    shared = find(host, cached, 0);
  }
  if (t.unified) {
    t.device = t.host = t.small = shared;
    return t;
  }
  t.device = find(device, 0, host | cached);
  t.host = find(host, cached, device);
  t.small = shared;
  return t;
}

int coherent_host_type(const VkPhysicalDeviceMemoryProperties& p) {
  constexpr VkMemoryPropertyFlags need = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  int best = -1;
  for (uint32_t i = 0; i < p.memoryTypeCount; ++i) {
    auto flags = p.memoryTypes[i].propertyFlags;
    auto avoided = VK_MEMORY_PROPERTY_PROTECTED_BIT |
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
    if ((flags & need) == need && !(flags & avoided) &&
        (best < 0 || flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT)) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

Allocations::Allocations(const Device& device) : device_(device) {
  VmaVulkanFunctions lookup{}; // of all the others
  lookup.vkGetInstanceProcAddr = device.vk().vkGetInstanceProcAddr;
  lookup.vkGetDeviceProcAddr = device.vk().vkGetDeviceProcAddr;
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  if (device.caps().memory_budget) {
    info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  }
  info.physicalDevice = device.physical();
  info.device = device.handle();
  info.instance = device.instance();
  info.vulkanApiVersion = VK_API_VERSION_1_2;
  info.pVulkanFunctions = &lookup;
  vk_check(vmaCreateAllocator(&info, &vma_), "vmaCreateAllocator");
}

Allocations::~Allocations() {
  vmaDestroyAllocator(vma_);
}

Allocation Allocations::create(size_t size, int type, bool mapped) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size + tail_padding;
  info.usage = usage;
  VmaAllocationCreateInfo how{};
  how.memoryTypeBits = 1u << type;
  how.flags = mapped ? VMA_ALLOCATION_CREATE_MAPPED_BIT : 0;
  if (config().debug_guard) {
    how.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
  }
  Allocation a;
  VmaAllocationInfo result{};
  auto& caps = device_.caps();
  VkResult r = size > caps.max_buffer_size
      ? VK_ERROR_OUT_OF_DEVICE_MEMORY
      : vmaCreateBufferWithAlignment(
            vma_, &info, &how, 256, &a.buffer, &a.memory, &result);
  if (r != VK_SUCCESS) {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    vmaGetHeapBudgets(vma_, budgets);
    auto heap = caps.memory.memoryTypes[type].heapIndex;
    throw VkError(
        "[malloc] Unable to allocate " + std::to_string(size) + " bytes (" +
            mib(size) + ") on " + caps.name + ": " + result_name(r) +
            ". The heap has " + mib(caps.memory.memoryHeaps[heap].size) +
            ", of which " + mib(budgets[heap].usage) +
            " are in use; the largest single array is " +
            mib(caps.max_buffer_size) + ".",
        r);
  }
  a.mapped = mapped ? result.pMappedData : nullptr;
  VkBufferDeviceAddressInfo ask{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  ask.buffer = a.buffer;
  a.address = device_.vk().vkGetBufferDeviceAddress(device_.handle(), &ask);
  return a;
}

void Allocations::free(Allocation& a) {
  if (a.buffer) {
    vmaDestroyBuffer(vma_, a.buffer, a.memory);
  }
  a = {};
}

Allocation Allocations::create_guarded(size_t size, int type) {
  auto a = create(size + 2 * red_zone, type, true);
  std::memset(a.mapped, poison, size + 2 * red_zone);
  a.mapped = static_cast<uint8_t*>(a.mapped) + red_zone;
  a.address += red_zone;
  return a;
}

void Allocations::check_guard(const Allocation& a, size_t size) {
  auto* p = static_cast<const uint8_t*>(a.mapped);
  auto bad = [](const uint8_t* zone) {
    return std::any_of(
        zone, zone + red_zone, [](uint8_t x) { return x != poison; });
  };
  if (bad(p - red_zone) || bad(p + size)) {
    throw std::runtime_error(
        "[vulkan] guard: a kernel wrote outside an array of " +
        std::to_string(size) + " bytes.");
  }
}

} // namespace mlx::core::vulkan
