#include "mlx/allocator.h"

#include <pthread.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "backend/deferred_free.h"
#include "backend/stream.h"
#include "mlx/backend/common/buffer_cache.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/memory.h"
#include "runtime/device.h"
#include "runtime/free_lists.h"
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
    limit = device_memory_size() / 100 * 95;
    cache_limit_ = limit;
    for (auto& c : caches_) {
      c = new_cache();
    }
    set_trim_hook([] { the().free_cached(); });
    // A forked child finds the caches whole and unlocked.
    auto lock = [] { std::lock(the().mutex_, the().deferred.mutex()); };
    auto unlock = [] {
      the().deferred.mutex().unlock();
      the().mutex_.unlock();
    };
    pthread_atfork(lock, unlock, unlock);
  }

  allocator::Buffer malloc(size_t size) override {
    if (size == 0) {
      return allocator::Buffer{nullptr};
    }
    auto* device = device_if_started();
    Placement placement = current_placement();
    auto kind =
        device ? device->memory().kind_for(size, placement) : BufferKind::Heap;
    Buffer* buffer = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (!config().debug_guard && !runs_unwatched(device)) {
        buffer = small_.take(kind, size);
        if (!buffer) {
          buffer = cache(kind).reuse_from_cache(size);
        }
        if (!buffer) {
          buffer = deferred.take(kind, size);
        }
      }
      if (!buffer) {
        size_t used = counted() + (placement == Placement::InPlace ? 0 : size);
        size_t most = most_allowed(device);
        if (used + cached_locked() + deferred.bytes() > most) {
          deferred.finish();
          trim_locked(most > used ? most - used : 0);
        }
      }
    }
    if (!buffer) {
      deferred.make_room(size);
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
    if (!recycle(*b)) {
      destroy(b);
      return;
    }
    std::unique_lock lock(mutex_);
    if (cached_locked() + b->size <= cache_limit_) {
      if (!small_.put(b)) {
        cache(b->kind).recycle_to_cache(b);
      }
    } else {
      lock.unlock();
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
  size_t cached() {
    deferred.finish(); // bytes that clear_cache() reported as freed
    std::lock_guard lock(mutex_);
    return cached_locked();
  }
  size_t set_cache_limit(size_t n) {
    deferred.finish();
    std::lock_guard lock(mutex_);
    std::swap(cache_limit_, n);
    trim_locked(cache_limit_);
    if (cache_limit_ < FreeLists::reserve) {
      destroy_all(small_.take_all());
    }
    return n;
  }
  // The bytes that no array uses.
  void free_cached() {
    deferred.finish();
    std::lock_guard lock(mutex_);
    trim_locked(0);
    destroy_all(small_.take_all());
  }
  // The same without a few small buffers, which do not count as cache. They are
  // freed later (deferred_free.h).
  void clear_cache() {
    Caches leave;
    Buffer* list;
    {
      std::lock_guard lock(mutex_);
      list = small_.take_all_but_reserve();
      bool any = list;
      for (size_t i = 0; i < buffer_kinds; ++i) {
        if (caches_[i]->cache_size() > 0) {
          leave[i] = std::exchange(caches_[i], new_cache());
          any = true;
        }
      }
      if (!any) {
        return;
      }
    }
    if (device_if_started()) {
      deferred.add(std::move(leave), list);
    } else {
      destroy_all(list);
    }
  }

  // The bytes of arrays now and at most, and the limit of arrays and cache.
  std::atomic<size_t> active{0}, peak{0}, limit{0};
  DeferredFree deferred{destroy};

 private:
  static constexpr size_t page_size = 16384; // as MLX rounds sizes for reuse
  using Cache = DeferredFree::Cache;
  using Caches = DeferredFree::Caches;

  static std::unique_ptr<Cache> new_cache() {
    return std::make_unique<Cache>(
        page_size, [](Buffer* b) { return b->size; }, destroy);
  }

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
    if (placement != Placement::Device || size <= FreeLists::largest ||
        config().debug_guard || runs_unwatched(&device)) {
      return memory.allocate(size, placement);
    }
    if (auto* b = memory.allocate_in_blocks(size, placement)) {
      return b;
    }
    auto wanted = [=](const Buffer& b) { // BufferCache reuses these
      return b.kind == kind && b.size >= size &&
          b.size < std::min(2 * size, size + 2 * page_size);
    };
    if (device.recorder().wait_for_release(wanted) &&
        !runs_unwatched(&device)) {
      std::lock_guard lock(mutex_);
      if (auto* b = cache(kind).reuse_from_cache(size)) {
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

  // A buffer is reused only for its own kind.
  Cache& cache(BufferKind kind) {
    return *caches_[static_cast<size_t>(kind)];
  }

  size_t cached_locked() const {
    size_t n = small_.bytes();
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
    if (cached_locked() > keep) {
      destroy_all(small_.take_all());
    }
  }

  static void destroy_all(Buffer* list) {
    while (list) {
      destroy(std::exchange(list, list->next_free));
    }
  }

  size_t cache_limit_;
  mutable std::mutex mutex_;
  FreeLists small_;
  Caches caches_; // of buffers that small_ does not hold
};

} // namespace

void stop_deferred_free() {
  VulkanAllocator::the().deferred.stop();
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
  return vulkan::VulkanAllocator::the().cached();
}
size_t set_cache_limit(size_t limit) {
  return vulkan::VulkanAllocator::the().set_cache_limit(limit);
}
void clear_cache() {
  vulkan::VulkanAllocator::the().clear_cache();
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
