#include "mlx/allocator.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "backend/stream.h"
#include "mlx/backend/common/buffer_cache.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/memory.h"
#include "runtime/device.h"
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

// Buffers are recycled only among their like.
enum Kind { Heap, Coherent, HostBorn, DeviceBorn, kinds };

Kind kind_of(const Buffer& b) {
  if (b.coherent) {
    return Coherent;
  }
  if (b.heap) {
    return Heap;
  }
  return b.placement == Placement::Host ? HostBorn : DeviceBorn;
}

void destroy(Buffer* b) {
  if (auto* d = device_if_started()) {
    d->memory().release(b);
  } else if (b->device.buffer || b->host.buffer) {
    // After a fork the driver's objects cannot be freed: let them go.
  } else {
    Memory::release_heap(b);
  }
}

class VulkanAllocator : public allocator::Allocator {
 public:
  VulkanAllocator() {
    limit_ = device_memory_size() / 100 * 95;
    cache_limit_ = limit_;
    for (auto& c : caches_) {
      c = std::make_unique<Cache>(
          /* page_size */ 16384, [](Buffer* b) { return b->size; }, destroy);
    }
  }

  allocator::Buffer malloc(size_t size) override {
    if (size == 0) {
      return allocator::Buffer{nullptr};
    }
    auto* device = device_if_started();
    Placement placement = current_placement();
    Kind kind = Heap;
    if (device) {
      auto& types = device->memory().types();
      bool small = types.small >= 0 && size <= config().small_buffer;
      kind = types.unified || small      ? Coherent
          : placement == Placement::Host ? HostBorn
                                         : DeviceBorn;
    }
    Buffer* buffer = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (!config().debug_guard) {
        buffer = caches_[kind]->reuse_from_cache(size);
      }
      size_t used = active_.load() + size;
      size_t most = limit_.load();
      if (!buffer && used + cached_locked() > most) {
        trim_locked(most > used ? most - used : 0);
      }
    }
    if (!buffer) {
      buffer = create(device, size, placement);
    }
    size_t now = active_ += buffer->size;
    size_t peak = peak_;
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
    return allocator::Buffer{buffer};
  }

  void free(allocator::Buffer handle) override {
    auto* b = static_cast<Buffer*>(handle.ptr());
    if (!b) {
      return;
    }
    active_ -= b->size;
    if (b->guarded) {
      try {
        if (auto* d = device_if_started()) {
          d->memory().check_guard(*b);
        }
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        std::abort();
      }
    }
    if (!recycle(*b)) {
      destroy(b);
      return;
    }
    std::unique_lock lock(mutex_);
    if (cached_locked() + b->size <= cache_limit_) {
      caches_[kind_of(*b)]->recycle_to_cache(b);
    } else {
      lock.unlock();
      destroy(b);
    }
  }

  size_t size(allocator::Buffer buffer) const override {
    auto* b = static_cast<const Buffer*>(buffer.ptr());
    return b ? b->size : 0;
  }

  size_t active() const {
    return active_;
  }
  size_t peak() const {
    return peak_;
  }
  void reset_peak() {
    peak_ = 0;
  }
  size_t limit() const {
    return limit_;
  }
  size_t set_limit(size_t n) {
    return limit_.exchange(n);
  }
  size_t cached() const {
    std::lock_guard lock(mutex_);
    return cached_locked();
  }
  size_t set_cache_limit(size_t n) {
    std::lock_guard lock(mutex_);
    std::swap(cache_limit_, n);
    trim_locked(cache_limit_);
    return n;
  }
  void clear_cache() {
    std::lock_guard lock(mutex_);
    trim_locked(0);
  }

 private:
  using Cache = BufferCache<Buffer>;

  Buffer* create(vulkan::Device* device, size_t size, Placement placement) {
    if (!device) {
      return Memory::allocate_heap(size);
    }
    try {
      return device->memory().allocate(size, placement);
    } catch (const VkError&) {
      clear_cache();
      return device->memory().allocate(size, placement);
    }
  }

  // Back to its birth state; false: not worth keeping.
  static bool recycle(Buffer& b) {
    if (b.guarded) {
      return false;
    }
    if (b.coherent) {
      return true;
    }
    auto* d = device_if_started();
    if (!d) {
      return b.heap && !b.device.buffer && !b.host.buffer;
    }
    if (b.heap || (b.placement == Placement::Host && !b.host.buffer)) {
      return false;
    }
    d->memory().free(b.placement == Placement::Host ? b.device : b.host);
    if (b.placement == Placement::Host) {
      b.address = 0;
    }
    b.host_valid = b.device_valid = b.download_recorded = false;
    b.last_write.reset();
    b.cpu_writer = {};
    b.fetch.reset();
    return true;
  }

  size_t cached_locked() const {
    size_t n = 0;
    for (auto& c : caches_) {
      n += c->cache_size();
    }
    return n;
  }

  void trim_locked(size_t keep) {
    for (auto& c : caches_) {
      size_t total = cached_locked();
      if (total <= keep) {
        return;
      }
      if (c->cache_size() > 0) {
        c->release_cached_buffers(std::min(total - keep, c->cache_size()));
      }
    }
  }

  std::atomic<size_t> active_{0}, peak_{0}, limit_{0};
  size_t cache_limit_;
  mutable std::mutex mutex_;
  std::array<std::unique_ptr<Cache>, kinds> caches_;
};

VulkanAllocator& vulkan_allocator() {
  static auto* a = new VulkanAllocator; // leaked: arrays may outlive statics
  return *a;
}

} // namespace

} // namespace vulkan

namespace allocator {

Allocator& allocator() {
  return vulkan::vulkan_allocator();
}

void* Buffer::raw_ptr() {
  auto* b = static_cast<vulkan::Buffer*>(ptr_);
  if (!b) {
    return nullptr;
  }
  if (b->coherent) {
    return static_cast<char*>(b->device.mapped) + b->guard_offset;
  }
  if (auto* d = vulkan::device_if_started()) {
    return d->memory().host_pointer(*b);
  }
  // No device (yet, no more, or not in this process): host memory only.
  if (!b->heap && !b->host.mapped) {
    b->heap = std::calloc(1, b->size);
  }
  return b->heap ? b->heap : b->host.mapped;
}

bool can_reuse_alien_buffer(void*) {
  return false; // foreign host memory is not addressable by the device
}

} // namespace allocator

size_t get_active_memory() {
  return vulkan::vulkan_allocator().active();
}
size_t get_peak_memory() {
  return vulkan::vulkan_allocator().peak();
}
void reset_peak_memory() {
  vulkan::vulkan_allocator().reset_peak();
}
size_t set_memory_limit(size_t limit) {
  return vulkan::vulkan_allocator().set_limit(limit);
}
size_t get_memory_limit() {
  return vulkan::vulkan_allocator().limit();
}
size_t get_cache_memory() {
  return vulkan::vulkan_allocator().cached();
}
size_t set_cache_limit(size_t limit) {
  return vulkan::vulkan_allocator().set_cache_limit(limit);
}
void clear_cache() {
  vulkan::vulkan_allocator().clear_cache();
}
size_t set_wired_limit(size_t) {
  return 0; // Vulkan has no residency call: device memory is resident
}

} // namespace mlx::core
