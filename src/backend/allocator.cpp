#include "mlx/allocator.h"

#include <pthread.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "backend/stream.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/memory.h"
#include "runtime/device.h"
#include "runtime/memory_cache.h"
#include "runtime/recorder.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {

namespace {

size_t host_memory_size() {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? info.totalram * size_t(info.mem_unit)
                             : size_t(8) << 30;
}

size_t device_memory_size() {
  auto& info = gpu::device_info(0);
  auto it = info.find("memory_size");
  return it == info.end() ? host_memory_size() : std::get<size_t>(it->second);
}

bool runs_unwatched(Device* d) {
  return d && d->timeline().runs_unwatched();
}

void destroy(Buffer* b) {
  auto* d = device_if_started();
  if (runs_unwatched(d)) {
    return; // leaked
  }
  if (d) {
    d->memory().release(b);
  } else {
    Memory::release_heap(b);
  }
}

class VulkanAllocator : public allocator::Allocator {
 public:
  static VulkanAllocator& the() {
    static auto* a = new VulkanAllocator; // leaked: arrays may outlive statics
    return *a;
  }

  VulkanAllocator() {
    limit = cache.limit();
    set_trim_hook([] { the().cache.free_all(); });
    // A forked child finds the cache whole and unlocked.
    pthread_atfork(
        [] { the().cache.lock(); },
        [] { the().cache.unlock(false); },
        [] { the().cache.unlock(true); });
  }

  allocator::Buffer malloc(size_t size) override {
    if (size == 0) {
      return allocator::Buffer{nullptr};
    }
    auto* device = device_if_started();
    Placement placement = current_placement();
    auto kind =
        device ? device->memory().kind_for(size, placement) : BufferKind::Heap;
    bool reuses = placement != Placement::Spare && !config().debug_guard &&
        !runs_unwatched(device);
    Buffer* buffer = reuses ? cache.take(kind, size) : nullptr;
    if (!buffer) {
      size_t used = counted() + (placement == Placement::InPlace ? 0 : size);
      size_t most = most_allowed(device);
      cache.make_room(size, most - std::min(most, used));
      buffer = device ? allocate(*device, kind, size, placement)
                      : Memory::allocate_heap(size);
    }
    active += buffer->size;
    size_t now = counted();
    size_t most = peak;
    while (most < now && !peak.compare_exchange_weak(most, now)) {
    }
    return allocator::Buffer{buffer};
  }

  void free(allocator::Buffer handle) override {
    auto* b = static_cast<Buffer*>(handle.ptr());
    if (!b) {
      return;
    }
    active -= b->size;
    if (config().debug_guard) {
      check_guard(*b);
    }
    if (recycle(*b)) {
      cache.put(b);
    } else {
      destroy(b);
    }
  }

  size_t size(allocator::Buffer buffer) const override {
    auto* b = static_cast<const Buffer*>(buffer.ptr());
    return b ? b->size : 0;
  }

  // The bytes of arrays, without those that a card reads in the host's memory.
  size_t counted() const {
    auto* device = device_if_started();
    size_t in_place = device ? device->memory().in_place_bytes.load() : 0;
    size_t all = active;
    return all - std::min(all, in_place);
  }

  // The bytes of arrays now and at most, and the limit of arrays and cache.
  std::atomic<size_t> active{0}, peak{0}, limit{0};
  MemoryCache cache{destroy, device_memory_size() / 100 * 95};

 private:
  // The limit of arrays and cache; other programs use the device too.
  size_t most_allowed(vulkan::Device* device) const {
    return device ? std::min<size_t>(limit, device->memory().budget())
                  : limit.load();
  }

  // Takes what running batches are about to free before new memory of the
  // driver, which takes long, and which a program that runs ahead of the device
  // would otherwise take without end.
  Buffer* allocate(
      vulkan::Device& device,
      BufferKind kind,
      size_t size,
      Placement placement) {
    auto& memory = device.memory();
    if (placement != Placement::Device || size <= MemoryCache::small ||
        config().debug_guard || runs_unwatched(&device)) {
      return memory.allocate(size, placement);
    }
    if (auto* b = memory.allocate_in_blocks(size, placement)) {
      return b;
    }
    auto wanted = [=](const Buffer& b) {
      return b.kind == kind && MemoryCache::fits(b.size, size);
    };
    if (device.recorder().wait_for_release(wanted) &&
        !runs_unwatched(&device)) {
      if (auto* b = cache.take(kind, size)) {
        return b;
      }
    }
    return memory.allocate(size, placement);
  }

  static bool recycle(Buffer& b) {
    auto* d = device_if_started();
    return d ? d->memory().recycle(b) : Memory::recycle_heap(b);
  }

  static void check_guard(const Buffer& b) {
    try {
      if (auto* d = device_if_started()) {
        d->memory().check_guard(b);
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::abort();
    }
  }
};

} // namespace

void stop_memory_cache() {
  VulkanAllocator::the().cache.stop();
}

} // namespace vulkan

namespace allocator {

Allocator& allocator() {
  return vulkan::VulkanAllocator::the();
}

void* Buffer::raw_ptr() {
  auto* b = static_cast<vulkan::Buffer*>(ptr_);
  if (!b) {
    return nullptr;
  }
  if (!b->mirrored()) {
    return b->mapped();
  }
  auto* d = vulkan::device_if_started();
  return d ? d->memory().host_pointer(*b) : vulkan::Memory::heap_pointer(*b);
}

bool can_reuse_alien_buffer(void*) {
  return false; // foreign host memory is not addressable by the device
}

} // namespace allocator

size_t get_active_memory() {
  return vulkan::VulkanAllocator::the().counted();
}
size_t get_peak_memory() {
  return vulkan::VulkanAllocator::the().peak;
}
void reset_peak_memory() {
  vulkan::VulkanAllocator::the().peak = 0;
}
size_t set_memory_limit(size_t limit) {
  return vulkan::VulkanAllocator::the().limit.exchange(limit);
}
size_t get_memory_limit() {
  return vulkan::VulkanAllocator::the().limit;
}
size_t get_cache_memory() {
  return vulkan::VulkanAllocator::the().cache.bytes();
}
size_t set_cache_limit(size_t limit) {
  return vulkan::VulkanAllocator::the().cache.set_limit(limit);
}
void clear_cache() {
  vulkan::VulkanAllocator::the().cache.clear(!vulkan::device_if_started());
}
// Vulkan has no call for residency, and device memory is resident. The limit is
// stored only to be returned by the next call.
size_t set_wired_limit(size_t limit) {
  static std::atomic<size_t> wired{0};
  auto& info = gpu::device_info(0);
  if (auto it = info.find("max_recommended_working_set_size");
      it != info.end() && limit > std::get<size_t>(it->second)) {
    throw std::invalid_argument(
        "[set_wired_limit] " + std::to_string(limit) +
        " bytes are more than the device's working set of " +
        std::to_string(std::get<size_t>(it->second)) + '.');
  }
  return wired.exchange(limit);
}

} // namespace mlx::core
