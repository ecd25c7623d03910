// Buffers that mx.clear_cache evicted and the driver has not freed yet. Freeing
// and allocating a prompt's memory takes milliseconds, and MLX-LM clears the
// cache after each part of a prompt and before the answer. Evicted buffers can
// therefore be reused for a short time; then a background thread frees them,
// one at a time, because the driver blocks other callers meanwhile. A query of
// the memory in use, and an allocation that needs room, frees them at once.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "mlx/backend/common/buffer_cache.h"
#include "runtime/free_lists.h"
#include "runtime/memory.h"

namespace mlx::core::vulkan {

class DeferredFree {
 public:
  using Cache = BufferCache<Buffer>; // its destructor frees what is left
  using Caches = std::array<std::unique_ptr<Cache>, buffer_kinds>;
  using Clock = std::chrono::steady_clock;
  static constexpr auto moment = std::chrono::milliseconds(100);
  static constexpr size_t most = 16; // sets; add() beyond this frees all

  // `destroy` must not call this.
  explicit DeferredFree(void (*destroy)(Buffer*)) : destroy_(destroy) {}

  // Defers freeing the buffers of `caches` (each may be null) and of `list`
  // (linked by next_free). Buffers of `list` are not reused.
  void add(Caches caches, Buffer* list);
  // Reuses an evicted buffer, chosen as BufferCache does; null if none fits.
  Buffer* take(BufferKind kind, size_t size) {
    return any_.load(std::memory_order_relaxed) ? find(kind, size) : nullptr;
  }
  // Frees `size` bytes before an allocation of `size` bytes, so that the total
  // does not grow. Small buffers are exempt: their cache is never cleared.
  void make_room(size_t size) {
    if (size > FreeLists::largest && any_.load(std::memory_order_relaxed)) {
      free_oldest(size);
    }
  }
  // Bytes that can be reused or are not freed yet.
  size_t bytes() const {
    return any_.load(std::memory_order_relaxed) ? count() : 0;
  }
  // Frees everything before it returns.
  void finish();
  std::mutex& mutex() { // held around fork()
    return mutex_;
  }
  // Calls finish() and ends the thread; later add() frees at once.
  void stop();

 private:
  struct Set {
    Caches caches;
    Buffer* list = nullptr;
    Clock::time_point until; // end of the time in which it can be reused
    size_t bytes() const;
    bool empty() const;
  };
  Buffer* find(BufferKind kind, size_t size);
  size_t count() const;
  void free_oldest(size_t size);
  void free_one(Set& set);
  void free_gently(Set& set);
  void loop();

  void (*destroy_)(Buffer*);
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::condition_variable cv_;
  // Guarded by mutex_: sets, oldest first, and whether the thread frees one.
  std::deque<Set> sets_;
  bool freeing_ = false, stopped_ = false;
  size_t being_freed_ = 0; // bytes, an upper bound
  std::atomic<int> in_a_hurry_{0}; // callers that wait for the thread
  std::thread thread_;
};

} // namespace mlx::core::vulkan
