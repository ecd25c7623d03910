#include "runtime/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/device.h"
#include "runtime/encoder.h"
#include "runtime/vma.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Red zones of the guard mode, and what they and fresh arrays are filled with
// (a NaN in f16, bf16 and f32).
constexpr size_t red_zone = 512;
constexpr uint8_t poison = 0xff;
// Kernels may read whole 16-byte words at an array's tail.
constexpr size_t tail_padding = 16;

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

Memory::Memory(Device& device) : device_(device) {
  const Caps& caps = device.caps();
  properties_ = caps.memory;
  types_ = choose_memory_types(
      properties_, caps.discrete(), static_cast<int>(config().memory));
  if (types_.device < 0 || types_.host < 0) {
    throw std::runtime_error(
        "[vulkan] " + caps.name + " has no host-coherent memory type.");
  }
  const Vk& vk = device.vk();
  VmaVulkanFunctions f{};
  f.vkGetPhysicalDeviceProperties = vk.vkGetPhysicalDeviceProperties;
  f.vkGetPhysicalDeviceMemoryProperties =
      vk.vkGetPhysicalDeviceMemoryProperties;
  f.vkAllocateMemory = vk.vkAllocateMemory;
  f.vkFreeMemory = vk.vkFreeMemory;
  f.vkMapMemory = vk.vkMapMemory;
  f.vkUnmapMemory = vk.vkUnmapMemory;
  f.vkFlushMappedMemoryRanges = vk.vkFlushMappedMemoryRanges;
  f.vkInvalidateMappedMemoryRanges = vk.vkInvalidateMappedMemoryRanges;
  f.vkBindBufferMemory = vk.vkBindBufferMemory;
  f.vkBindImageMemory = vk.vkBindImageMemory;
  f.vkGetBufferMemoryRequirements = vk.vkGetBufferMemoryRequirements;
  f.vkGetImageMemoryRequirements = vk.vkGetImageMemoryRequirements;
  f.vkCreateBuffer = vk.vkCreateBuffer;
  f.vkDestroyBuffer = vk.vkDestroyBuffer;
  f.vkCreateImage = vk.vkCreateImage;
  f.vkDestroyImage = vk.vkDestroyImage;
  f.vkCmdCopyBuffer = vk.vkCmdCopyBuffer;
  f.vkGetBufferMemoryRequirements2KHR = vk.vkGetBufferMemoryRequirements2;
  f.vkGetImageMemoryRequirements2KHR = vk.vkGetImageMemoryRequirements2;
  f.vkBindBufferMemory2KHR = vk.vkBindBufferMemory2;
  f.vkBindImageMemory2KHR = vk.vkBindImageMemory2;
  f.vkGetPhysicalDeviceMemoryProperties2KHR =
      vk.vkGetPhysicalDeviceMemoryProperties2;
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  if (caps.memory_budget) {
    info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  }
  info.physicalDevice = device.physical();
  info.device = device.handle();
  info.instance = device.instance();
  info.vulkanApiVersion = VK_API_VERSION_1_2;
  info.pVulkanFunctions = &f;
  vk_check(vmaCreateAllocator(&info, &vma_), "vmaCreateAllocator");
}

Memory::~Memory() {
  vmaDestroyAllocator(vma_);
}

uint64_t Memory::largest_buffer() const {
  return device_.caps().max_buffer_size;
}

Allocation Memory::create(size_t size, int type, bool mapped) {
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
  VkResult r = size > largest_buffer()
      ? VK_ERROR_OUT_OF_DEVICE_MEMORY
      : vmaCreateBufferWithAlignment(
            vma_, &info, &how, 256, &a.buffer, &a.memory, &result);
  if (r != VK_SUCCESS) {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    vmaGetHeapBudgets(vma_, budgets);
    auto heap = properties_.memoryTypes[type].heapIndex;
    throw VkError(
        "[malloc] Unable to allocate " + std::to_string(size) + " bytes (" +
            mib(size) + ") on " + device_.caps().name + ": " + result_name(r) +
            ". The heap has " + mib(properties_.memoryHeaps[heap].size) +
            ", of which " + mib(budgets[heap].usage) +
            " are in use; the largest single array is " +
            mib(largest_buffer()) + ".",
        r);
  }
  a.mapped = mapped ? result.pMappedData : nullptr;
  VkBufferDeviceAddressInfo ask{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  ask.buffer = a.buffer;
  a.address = device_.vk().vkGetBufferDeviceAddress(device_.handle(), &ask);
  return a;
}

void Memory::free(Allocation& a) {
  if (a.buffer) {
    vmaDestroyBuffer(vma_, a.buffer, a.memory);
  }
  a = {};
}

Allocation Memory::allocate_ring(size_t size) {
  int type = types_.small >= 0 ? types_.small : types_.host;
  return create(size, type, true);
}

Buffer* Memory::allocate(size_t size, Placement placement) {
  auto b = std::make_unique<Buffer>();
  b->size = size;
  b->placement = placement;
  if (config().debug_guard && types_.unified) {
    b->coherent = true;
    b->guarded = true;
    b->guard_offset = red_zone;
    b->device = create(size + 2 * red_zone, types_.device, true);
    std::memset(b->device.mapped, poison, size + 2 * red_zone);
    b->address = b->device.address + red_zone;
    return b.release();
  }
  if (types_.unified || (types_.small >= 0 && size <= config().small_buffer)) {
    b->coherent = true;
    b->device =
        create(size, types_.unified ? types_.device : types_.small, true);
    b->address = b->device.address;
  } else if (placement == Placement::Device) {
    b->device = create(size, types_.device, false);
    b->address = b->device.address;
  } else {
    b->host = create(size, types_.host, true);
  }
  return b.release();
}

Buffer* Memory::allocate_heap(size_t size) {
  auto b = std::make_unique<Buffer>();
  b->size = size;
  b->heap = std::malloc(size + tail_padding);
  b->host_valid = true;
  if (!b->heap) {
    throw std::runtime_error(
        "[malloc] Unable to allocate " + std::to_string(size) +
        " bytes of host memory.");
  }
  return b.release();
}

void Memory::release_heap(Buffer* b) {
  std::free(b->heap);
  delete b;
}

void Memory::release(Buffer* b) {
  free(b->device);
  free(b->host);
  std::free(b->heap);
  delete b;
}

void Memory::check_guard(const Buffer& b) const {
  if (!b.guarded) {
    return;
  }
  auto* p = static_cast<const uint8_t*>(b.device.mapped);
  auto bad = [&](const uint8_t* zone, size_t n) {
    return std::any_of(zone, zone + n, [](uint8_t x) { return x != poison; });
  };
  if (bad(p, red_zone) || bad(p + red_zone + b.size, red_zone)) {
    throw std::runtime_error(
        "[vulkan] guard: a kernel wrote outside an array of " +
        std::to_string(b.size) + " bytes.");
  }
}

void Memory::ensure_device_side(Buffer& b) {
  if (!b.device.buffer) {
    b.device = create(b.size, types_.device, types_.unified);
    b.address = b.device.address;
  }
}

void Memory::append_copy(
    Batch& batch,
    const Allocation& src,
    const Allocation& dst,
    size_t size) {
  Record r;
  r.kind = Record::Kind::Copy;
  r.src = src.buffer;
  r.dst = dst.buffer;
  r.copy_size = size;
  r.bytes = 2 * size;
  r.first_access = static_cast<uint32_t>(batch.accesses.size());
  batch.accesses.push_back({src.address, 0, size, false});
  batch.accesses.push_back({dst.address, 0, size, true});
  r.access_count = 2;
  batch.records.push_back(r);
}

// Batches of other streams may be submitted first: an upload counts for them
// once it is on the queue, and never if its batch failed. Until then each batch
// makes its own. Under mirror_mutex_.
bool Memory::device_has_it(
    Buffer& b,
    const std::shared_ptr<Completion>& batch) {
  if (!b.device_valid) {
    b.uploads.clear();
    return false;
  }
  if (b.uploads.empty()) {
    return true;
  }
  bool here = false;
  for (const auto& upload : b.uploads) {
    auto ticket = upload->ticket();
    if (ticket != 0 && ticket != Completion::failed_ticket) {
      b.uploads.clear();
      return true;
    }
    here |= upload == batch;
  }
  return here;
}

void Memory::prepare_for_device(
    Batch& batch,
    Buffer& b,
    uint64_t begin,
    uint64_t end,
    bool write) {
  std::lock_guard lock(mirror_mutex_);
  ensure_device_side(b);
  bool covered = write && begin == 0 && end >= b.size;
  if (b.host_valid && !covered && !device_has_it(b, batch.completion)) {
    if (!b.host.buffer) {
      b.host = create(b.size, types_.host, true);
    }
    if (b.heap) {
      batch.host_copies.push_back({b.host.mapped, b.heap, b.size});
    }
    append_copy(batch, b.host, b.device, b.size);
    uploaded += b.size;
    b.device_valid = true;
    b.uploads.push_back(batch.completion);
  }
  if (write) {
    b.device_valid = true;
    b.host_valid = false;
    b.uploads.clear();
    b.download_recorded = false;
    b.last_write = batch.completion;
    if (b.heap) {
      // Written through donation only, so nobody else knows this pointer; an
      // upload still in flight may read it.
      batch.retained.emplace_back(b.heap, std::free);
      b.heap = nullptr;
    }
  }
}

void Memory::record_download(Batch& batch, Buffer& b) {
  if (b.coherent) {
    return;
  }
  std::lock_guard lock(mirror_mutex_);
  if (b.host_valid || !b.device_valid || b.download_recorded) {
    return;
  }
  if (!b.host.buffer) {
    b.host = create(b.size, types_.host, true);
  }
  append_copy(batch, b.device, b.host, b.size);
  downloaded += b.size;
  b.download_recorded = true;
}

// Only readers outside of any fence need this. Under mirror_mutex_.
void Memory::start_fetch(Buffer& b) {
  if (!b.device_valid || b.host_valid || b.download_recorded) {
    return;
  }
  auto batch = std::make_unique<Batch>();
  if (!b.host.buffer) {
    b.host = create(b.size, types_.host, true);
  }
  append_copy(*batch, b.device, b.host, b.size);
  downloaded += b.size;
  if (b.last_write) {
    batch->waits.push_back({nullptr, 0, b.last_write});
  }
  b.download_recorded = true;
  b.fetch = device_.submit_immediate(std::move(batch));
}

void Memory::set_cpu_writer(Buffer& b, EventPoint signal) {
  if (b.coherent) {
    return;
  }
  std::lock_guard lock(mirror_mutex_);
  // The producer may work in place and may not have asked for its pointer yet:
  // what it will find there has to be fetched now.
  start_fetch(b);
  if (!b.heap && !b.host.buffer) {
    b.host = create(b.size, types_.host, true);
  }
  b.host_valid = true;
  b.device_valid = false;
  b.download_recorded = false;
  b.cpu_writer = std::move(signal);
}

const void* Memory::valid_host_pointer(const Buffer& b) const {
  if (b.coherent) {
    return static_cast<char*>(b.device.mapped) + b.guard_offset;
  }
  std::lock_guard lock(mirror_mutex_);
  if (!b.host_valid || b.fetch || b.cpu_writer.event) {
    return nullptr;
  }
  return b.heap ? b.heap : b.host.mapped;
}

bool Memory::awaits_cpu(Buffer& b) {
  if (b.coherent) {
    return false;
  }
  std::lock_guard lock(mirror_mutex_);
  return b.cpu_writer.event &&
      !b.cpu_writer.event->signaled(b.cpu_writer.value);
}

void* Memory::host_pointer(Buffer& b) {
  if (b.coherent) {
    return static_cast<char*>(b.device.mapped) + b.guard_offset;
  }
  std::unique_lock lock(mirror_mutex_);
  // While a CPU stream is at work, its worker asks later than the program
  // order says: GPU work that follows it may be encoded already, so nothing
  // may change.
  if (b.cpu_writer.event && b.cpu_writer.event->signaled(b.cpu_writer.value)) {
    b.cpu_writer = {};
  }
  if (!b.cpu_writer.event) {
    start_fetch(b);
    if (!b.heap && !b.host.buffer) {
      b.host = create(b.size, types_.host, true);
    }
    b.host_valid = true;
    b.device_valid = false;
    b.download_recorded = false;
  }
  void* pointer = b.heap ? b.heap : b.host.mapped;
  auto fetch = b.fetch;
  lock.unlock();
  if (fetch) {
    fetch->wait();
    if (auto e = fetch->error(); !e.empty()) {
      throw std::runtime_error(e);
    }
    lock.lock();
    if (b.fetch == fetch) {
      b.fetch.reset();
    }
  }
  return pointer;
}

} // namespace mlx::core::vulkan
