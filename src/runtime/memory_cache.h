// Buffers that no array uses, for later arrays of their kind and size. Small
// ones are in intrusive lists by size class: take() and put() neither allocate
// nor search, since a decode step calls both some hundred times. All others are
// in order of their size, and of their age.
//
// What clear() evicts stays a moment longer. Freeing and allocating a prompt's
// memory takes milliseconds, and MLX-LM clears the cache after each part of a
// prompt and before the answer. Evicted buffers can be taken for a short time;
// then a background thread frees them, one at a time, because the driver blocks
// other callers meanwhile. A query of the memory in use, and an allocation that
// needs room, frees them at once. Thread-safe. Free of MLX.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "runtime/memory.h"

namespace mlx::core::vulkan {

class MemoryCache {
 public:
  static constexpr size_t small = 64 << 10; // bytes of a buffer in the lists
  static constexpr size_t most_small = 64 << 20; // bytes in all lists
  // Bytes of small buffers that clear() leaves and that do not count: MLX-LM
  // clears the cache between a prompt and its answer, and freeing and creating
  // a thousand small buffers takes 3 ms.
  static constexpr size_t reserve = 8 << 20;
  static constexpr auto moment = std::chrono::milliseconds(100);
  static constexpr size_t most_clears = 16; // more free all evicted buffers

  // `destroy` must not call this.
  MemoryCache(void (*destroy)(Buffer*), size_t limit)
      : destroy_(destroy), limit_(limit) {}

  // Whether an array of `size` bytes may have a buffer of `has` bytes.
  static bool fits(size_t has, size_t size) {
    constexpr size_t most_waste = 32 << 10;
    return has >= size && has < std::min(2 * size, size + most_waste);
  }
  // A buffer that fits, or null.
  Buffer* take(BufferKind kind, size_t size);
  // Destroys it if the cache is full.
  void put(Buffer* buffer);
  // Before an allocation of `size` bytes: at most `most` bytes stay, and
  // evicted buffers of that size go, so that the total does not grow. Small
  // buffers are exempt from the latter: their lists are never empty.
  void make_room(size_t size, size_t most);
  // Evicts all but the reserve; frees it if `now`.
  void clear(bool now);
  // Frees all.
  void free_all();
  // Bytes in the cache. Frees what was evicted, which does not count.
  size_t bytes();
  // Returns the limit before.
  size_t set_limit(size_t limit);
  size_t limit() const {
    return limit_;
  }

  // Around fork(): nothing is being freed. The child has no other threads.
  void lock();
  void unlock(bool child) {
    waiting_ = child ? 0 : waiting_;
    mutex_.unlock();
  }
  // Frees evicted buffers and ends the thread; later clear() frees at once.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  // The newest first among equals.
  using Key = std::tuple<BufferKind, size_t, uint64_t>;
  static Key key_of(const Buffer& b) {
    return {b.kind.load(), b.size, ~b.cached_at};
  }
  struct Clear {
    uint64_t before; // evicts buffers with a lower Buffer::cached_at,
    Clock::time_point until; // which can be taken until then
  };

  // Four size classes between consecutive powers of two.
  static constexpr size_t classes = 4 * 17 + 1;
  static size_t class_of(size_t size) {
    size_t log = std::bit_width(size) - 1;
    size_t quarter = log < 2 ? 0 : (size >> (log - 2)) & 3;
    return 4 * log + quarter;
  }

  // All of these are called under the mutex.
  size_t counted() const {
    return small_bytes_ - reserved_ + large_bytes_ - evicted_;
  }
  Buffer* unlink(Buffer** link);
  Buffer* take_small(BufferKind kind, size_t size);
  void add(Buffer* buffer);
  void remove(Buffer* buffer);
  // These return lists linked by Buffer::next_free, before `list`. The largest
  // small ones first, so that as many as possible stay.
  Buffer* take_small_down_to(size_t bytes, Buffer* list = nullptr);
  Buffer* take_oldest(Buffer* list);
  Buffer* take_evicted(uint64_t before, size_t bytes);
  Buffer* take_down_to(size_t bytes);
  // Without the mutex meanwhile.
  void free(Lock& lock, Buffer* list);
  void finish(Lock& lock);
  void loop();

  void (*destroy_)(Buffer*);
  std::mutex mutex_; // guards the members below
  size_t limit_;
  std::array<std::array<Buffer*, classes + 3>, buffer_kinds> small_{};
  size_t small_bytes_ = 0, reserved_ = 0; // the latter is part of the former
  std::map<Key, Buffer*> by_size_;
  std::map<uint64_t, Buffer*> by_age_; // the same buffers, oldest first
  uint64_t next_age_ = 1;
  size_t large_bytes_ = 0, evicted_ = 0; // the latter is part of the former
  std::deque<Clear> clears_; // oldest first
  size_t freeing_ = 0; // bytes that are in neither and not freed yet
  int waiting_ = 0; // callers of finish()
  bool stopped_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

} // namespace mlx::core::vulkan
