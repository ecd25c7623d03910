// What mx.clear_cache has taken out of the cache and the driver has not back
// yet. To give back a prompt's memory, and to ask for it again for the next
// part of the prompt, takes milliseconds; MLX-LM clears the cache after each
// part and before the answer. So what leaves can be used again for a moment;
// then a thread of its own frees it, one buffer at a time, as the driver makes
// others wait meanwhile. Whoever asks how much is held, or needs room, has it
// freed at once. Thread-safe.
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

class Leaving {
 public:
  using Cache = BufferCache<Buffer>; // frees what it has at its end
  using Caches = std::array<std::unique_ptr<Cache>, buffer_kinds>;
  using Clock = std::chrono::steady_clock;
  static constexpr auto moment = std::chrono::milliseconds(100);
  static constexpr size_t most = 16; // sets; who adds more frees them

  // `destroy` must not call this.
  explicit Leaving(void (*destroy)(Buffer*)) : destroy_(destroy) {}

  // Some of the caches may be null; `list` goes on through next_free, and is
  // not used again.
  void add(Caches caches, Buffer* list);
  // One after all, as BufferCache finds it; null if there is none.
  Buffer* take(BufferKind kind, size_t size) {
    return any_.load(std::memory_order_relaxed) ? find(kind, size) : nullptr;
  }
  // Before the driver is asked for so many bytes: frees as many, so that what
  // is held does not grow, and the new ones find room in the driver's memory
  // that is at hand. Not for small ones, which have a cache that is never
  // cleared.
  void make_room(size_t size) {
    if (size > FreeLists::largest && any_.load(std::memory_order_relaxed)) {
      free_oldest(size);
    }
  }
  // What can be taken or is not freed yet.
  size_t bytes() const {
    return any_.load(std::memory_order_relaxed) ? count() : 0;
  }
  // When it returns all is freed.
  void finish();
  // The same for good: the thread ends, and what leaves is freed at once.
  void stop();

 private:
  struct Set {
    Caches caches;
    Buffer* list = nullptr;
    Clock::time_point until; // it can be used again
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
  // Under it: the first to leave in front, and whether the thread is freeing
  // one.
  std::deque<Set> sets_;
  bool freeing_ = false, stopped_ = false;
  size_t being_freed_ = 0; // bytes, at most
  std::atomic<int> in_a_hurry_{0}; // who waits for the thread
  std::thread thread_;
};

} // namespace mlx::core::vulkan
