#include "runtime/allocation.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/device.h"
#include "runtime/vma.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Fills red zones and fresh arrays: a NaN in f16, bf16 and f32.
constexpr uint8_t poison = 0xff;
constexpr size_t red_zone = 512;
constexpr size_t alignment = 256;
// VMA does not know that parts of a block's buffer are no images, and keeps
// them apart by bufferImageGranularity, which is 1 KiB on NVIDIA's GPUs.
constexpr size_t part_alignment = 1024;

// Memory of the host that returns to the driver with its array. Drivers take
// 0.3 ms for each MiB.
constexpr size_t large_of_host = 16 << 20;

// Adds the tail that kernels may read, and rounds up to the alignment.
size_t padded(size_t size, size_t unit = alignment) {
  return round_up(size + tail_padding, unit);
}

std::string mib(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

} // namespace

Allocations::Allocations(Device& device) : device_(device), blocks_(device) {
  VmaVulkanFunctions lookup{}; // for all other functions
  lookup.vkGetInstanceProcAddr = device.vk().vkGetInstanceProcAddr;
  lookup.vkGetDeviceProcAddr = device.vk().vkGetDeviceProcAddr;
  blocks_.replace(lookup);
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  if (device.caps().memory_budget) {
    info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  }
  VkDeviceSize limits[VK_MAX_MEMORY_HEAPS]; // MLX_VK_TEST=heap
  std::fill_n(limits, VK_MAX_MEMORY_HEAPS, VK_WHOLE_SIZE);
  auto& memory = device.caps().memory;
  for (uint32_t i = 0; config().test.heap != 0 && i < memory.memoryHeapCount;
       ++i) {
    limits[i] = memory.memoryHeaps[i].size;
  }
  info.pHeapSizeLimit = limits;
  info.preferredLargeHeapBlockSize = blocks_.block_size();
  info.physicalDevice = device.physical();
  info.device = device.handle();
  info.instance = device.instance();
  info.vulkanApiVersion = VK_API_VERSION_1_2;
  info.pVulkanFunctions = &lookup;
  auto callbacks = blocks_.callbacks();
  info.pAllocationCallbacks = &callbacks;
  vk_check(vmaCreateAllocator(&info, &vma_), "vmaCreateAllocator");
}

Allocations::~Allocations() {
  vmaDestroyAllocator(vma_);
}

uint32_t Allocations::buffer_types() const {
  auto info = array_buffer(alignment);
  uint32_t types = 0;
  for (uint32_t i = 0; i < device_.caps().memory.memoryTypeCount; ++i) {
    VmaAllocationCreateInfo how{};
    how.memoryTypeBits = 1u << i;
    uint32_t found;
    VkResult r = vmaFindMemoryTypeIndexForBufferInfo(vma_, &info, &how, &found);
    types |= r == VK_SUCCESS ? 1u << i : 0;
  }
  return types;
}

VkResult Allocations::try_type(
    size_t size,
    int type,
    HostUse use,
    bool beyond_budget,
    Allocation& a) {
  bool mapped = use != HostUse::None;
  auto& caps = device_.caps();
  a.part = blocks_.has_buffers(type);
  size_t unit = a.part ? part_alignment : alignment;
  // Rounded up, because VMA would keep the gaps between buffers as free ranges
  // and search all of them each time.
  auto info = array_buffer(
      std::min<uint64_t>(padded(size, unit), caps.max_buffer_size));
  VmaAllocationCreateInfo how{};
  how.memoryTypeBits = 1u << type;
  how.flags = mapped ? VMA_ALLOCATION_CREATE_MAPPED_BIT : 0;
  auto flags = caps.memory.memoryTypes[type].propertyFlags;
  bool of_host = mapped && !(flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (config().debug_guard ||
      (of_host && size >= large_of_host && use != HostUse::Spill)) {
    how.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
  }
  if (caps.memory_budget) {
    uint32_t heap = caps.memory.memoryTypes[type].heapIndex;
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    vmaGetHeapBudgets(vma_, budgets);
    uint64_t most = caps.memory.memoryHeaps[heap].size;
    if (!beyond_budget) {
      most = std::min(most, budgets[heap].budget);
    }
    if (budgets[heap].usage + size > most && !DriverMemory::NothingNew::lives &&
        blocks_.release()) {
      vmaSetCurrentFrameIndex(vma_, ++samples_); // asks the driver
      vmaGetHeapBudgets(vma_, budgets);
    }
    if (budgets[heap].usage + size > most) {
      // Takes only what is free in VMA's blocks. RADV would hand out memory
      // that does not exist, and lose the device at the next submission.
      how.flags |= VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT;
      how.flags &= ~VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    }
  }
  VmaAllocationInfo result{};
  VkResult r;
  if (a.part) {
    VkMemoryRequirements needs{info.size, unit, how.memoryTypeBits};
    r = vmaAllocateMemory(vma_, &needs, &how, &a.memory, &result);
    if (r == VK_SUCCESS) {
      a.buffer = blocks_.buffer_of(result.deviceMemory);
      a.offset = result.offset;
    }
  } else {
    r = vmaCreateBufferWithAlignment(
        vma_, &info, &how, unit, &a.buffer, &a.memory, &result);
  }
  a.mapped = mapped ? result.pMappedData : nullptr;
  if (r == VK_SUCCESS && beyond_budget && caps.memory_budget) {
    tell_if_beyond(caps.memory.memoryTypes[type].heapIndex);
  }
  return r;
}

void Allocations::tell_if_beyond(uint32_t heap) {
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  vmaGetHeapBudgets(vma_, budgets);
  if (budgets[heap].usage <= budgets[heap].budget || told_.exchange(true)) {
    return;
  }
  std::fprintf(
      stderr,
      "[mlx-vulkan] %s of memory are in use on %s, where the driver allows %s. "
      "It may move arrays to the host's memory, which makes every step slow. "
      "End other programs that use the GPU, or take shorter contexts or "
      "weights of fewer bits.\n",
      mib(budgets[heap].usage).c_str(),
      device_.caps().name.c_str(),
      mib(budgets[heap].budget).c_str());
}

Allocation Allocations::create(
    size_t size,
    std::span<const int> types,
    HostUse use,
    bool beyond_budget) {
  auto& caps = device_.caps();
  if (size > caps.max_buffer_size - tail_padding) {
    throw VkError(
        "[malloc] Unable to allocate an array of " + std::to_string(size) +
            " bytes (" + mib(size) + ") on " + caps.name +
            ", whose largest single array is " + mib(caps.max_buffer_size) +
            " (`mlx-vulkan doctor` shows this limit). Split it, as with "
            "mx.split() along an axis, and work on the parts.",
        VK_ERROR_OUT_OF_DEVICE_MEMORY);
  }
  Allocation a;
  VkResult r = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  int type = -1;
  // Later types serve when the heap of the first is full.
  size_t tries = DriverMemory::NothingNew::lives ? 1 : types.size();
  for (size_t i = 0; i < tries && !a.buffer; ++i) {
    type = types[i];
    VkResult now = try_type(size, type, use, beyond_budget, a);
    // If all fail, the error of the first type is reported.
    r = i == 0 || now == VK_SUCCESS ? now : r;
  }
  if (r != VK_SUCCESS) {
    throw OutOfMemory(describe(size, types, r), r);
  }
  a.size = size;
  auto flags = caps.memory.memoryTypes[type].propertyFlags;
  a.host_apart = a.mapped && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  if (use >= HostUse::Array && config().debug_noncoherent) {
    a.host_apart = true;
    a.behind = a.mapped;
    a.mapped = std::aligned_alloc(alignment, padded(size));
    if (!a.mapped) {
      throw std::bad_alloc();
    }
    std::memset(a.mapped, poison, size);
  }
  VkBufferDeviceAddressInfo ask{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  ask.buffer = a.buffer;
  a.address =
      device_.vk().vkGetBufferDeviceAddress(device_.handle(), &ask) + a.offset;
  return a;
}

std::string Allocations::describe(
    size_t size,
    std::span<const int> types,
    VkResult result) const {
  auto& caps = device_.caps();
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  vmaGetHeapBudgets(vma_, budgets);
  std::string text = "[malloc] Unable to allocate " + std::to_string(size) +
      " bytes (" + mib(size) + ") on " + caps.name + ": " +
      result_name(result) + ".";
  for (int type : types) {
    auto heap = caps.memory.memoryTypes[type].heapIndex;
    auto& h = caps.memory.memoryHeaps[heap];
    text += h.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT ? " The device's heap of "
                                                      : " The host's heap of ";
    text += mib(h.size) + " has " + mib(budgets[heap].usage) + " in use here";
    if (caps.memory_budget) {
      text += ", where the driver allows " + mib(budgets[heap].budget);
    }
    text += ".";
  }
  return text +
      " Free arrays, take smaller batches, shorter contexts or weights of "
      "fewer bits, or end other programs that use the GPU; "
      "mx.set_memory_limit() and mx.set_cache_limit() bound what is kept.";
}

void Allocations::free(Allocation& a) {
  if (a.buffer) {
    if (a.behind) {
      std::free(a.mapped);
    } else if (a.host_apart) {
      // Otherwise the host's cache could write into the next owner's memory.
      vmaFlushAllocation(vma_, a.memory, 0, VK_WHOLE_SIZE);
    }
    vmaDestroyBuffer(vma_, a.part ? VK_NULL_HANDLE : a.buffer, a.memory);
  }
  a = {};
}

void Allocations::flush(const Allocation& a) {
  if (a.behind) {
    std::memcpy(a.behind, a.mapped, a.size);
  } else if (a.host_apart) {
    // VMA extends the range to nonCoherentAtomSize, all of this buffer.
    vk_check(
        vmaFlushAllocation(vma_, a.memory, 0, VK_WHOLE_SIZE),
        "vkFlushMappedMemoryRanges");
  }
}

void Allocations::invalidate(const Allocation& a) {
  if (a.behind) {
    std::memcpy(a.mapped, a.behind, a.size);
  } else if (a.host_apart) {
    vk_check(
        vmaInvalidateAllocation(vma_, a.memory, 0, VK_WHOLE_SIZE),
        "vkInvalidateMappedMemoryRanges");
  }
}

uint64_t Allocations::budget(std::span<const int> types) {
  auto& caps = device_.caps();
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  if (caps.memory_budget) {
    using namespace std::chrono;
    int64_t now = steady_clock::now().time_since_epoch() / milliseconds(1);
    int64_t last = sampled_;
    if (now - last >= 100 && sampled_.compare_exchange_strong(last, now)) {
      vmaSetCurrentFrameIndex(vma_, ++samples_); // asks the driver
    }
    vmaGetHeapBudgets(vma_, budgets);
  }
  uint64_t bytes = 0;
  for (int type : types) {
    auto heap = caps.memory.memoryTypes[type].heapIndex;
    uint64_t size = caps.memory.memoryHeaps[heap].size;
    bytes += caps.memory_budget ? std::min(size, budgets[heap].budget) : size;
  }
  return bytes;
}

uint64_t Allocations::room(std::span<const int> types) {
  uint64_t all = budget(types), used = 0;
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  vmaGetHeapBudgets(vma_, budgets);
  for (int type : types) {
    auto& heap = budgets[device_.caps().memory.memoryTypes[type].heapIndex];
    auto& blocks = heap.statistics;
    used += heap.usage - (blocks.blockBytes - blocks.allocationBytes);
  }
  return all - std::min(all, used);
}

Allocation Allocations::create_guarded(
    size_t size,
    std::span<const int> types,
    bool beyond_budget) {
  auto a = create(size + 2 * red_zone, types, HostUse::Coherent, beyond_budget);
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
