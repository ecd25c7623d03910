#include "backend/deferred_free.h"

#include <algorithm>
#include <utility>

#include "runtime/device.h"

namespace mlx::core::vulkan {

size_t DeferredFree::Set::bytes() const {
  size_t n = 0;
  for (auto& c : caches) {
    n += c ? c->cache_size() : 0;
  }
  for (auto* b = list; b; b = b->next_free) {
    n += b->size;
  }
  return n;
}

bool DeferredFree::Set::empty() const {
  for (auto& c : caches) {
    if (c && c->cache_size() > 0) {
      return false;
    }
  }
  return !list;
}

void DeferredFree::add(Caches caches, Buffer* list) {
  {
    std::lock_guard lock(mutex_);
    sets_.push_back({std::move(caches), list, Clock::now() + moment});
    any_ = true;
    if (!stopped_ && sets_.size() <= most) {
      if (!thread_.joinable()) {
        thread_ = std::thread([this] { loop(); });
      }
      cv_.notify_all();
      return;
    }
  }
  finish();
}

// The newest set first: its sizes are the likeliest to be needed again.
Buffer* DeferredFree::find(BufferKind kind, size_t size) {
  std::lock_guard lock(mutex_);
  for (size_t i = sets_.size(); i-- > 0;) {
    auto& cache = sets_[i].caches[static_cast<size_t>(kind)];
    if (auto* b = cache ? cache->reuse_from_cache(size) : nullptr) {
      return b;
    }
  }
  return nullptr;
}

size_t DeferredFree::count() const {
  std::lock_guard lock(mutex_);
  size_t n = being_freed_;
  for (auto& set : sets_) {
    n += set.bytes();
  }
  return n;
}

void DeferredFree::free_oldest(size_t size) {
  std::lock_guard lock(mutex_);
  for (auto& set : sets_) {
    for (auto& c : set.caches) {
      if (size_t has = c ? c->cache_size() : 0) {
        c->release_cached_buffers(std::min(size, has));
        size -= std::min(size, has - c->cache_size());
        if (size == 0) {
          return;
        }
      }
    }
  }
}

void DeferredFree::free_one(Set& set) {
  if (set.list) {
    destroy_(std::exchange(set.list, set.list->next_free));
    return;
  }
  for (auto& c : set.caches) {
    if (c && c->cache_size() > 0) {
      c->release_cached_buffers(1);
      return;
    }
  }
}

// A slow call means that the driver returned memory to the system and blocked
// other callers; they get their turn before the next call.
void DeferredFree::free_gently(Set& set) {
  while (!set.empty()) {
    auto begun = Clock::now();
    free_one(set);
    auto took = Clock::now() - begun;
    if (took > std::chrono::microseconds(200) && in_a_hurry_ == 0) {
      std::this_thread::sleep_for(2 * took);
    }
  }
}

void DeferredFree::finish() {
  // A forked child has no thread and cannot free the driver's objects.
  if (!any_ || forked_from_started_device()) {
    return;
  }
  in_a_hurry_++;
  std::unique_lock lock(mutex_);
  auto sets = std::exchange(sets_, {});
  lock.unlock();
  for (auto& set : sets) {
    while (!set.empty()) {
      free_one(set);
    }
  }
  lock.lock();
  cv_.wait(lock, [this] { return !freeing_; });
  any_ = !sets_.empty();
  in_a_hurry_--;
}

void DeferredFree::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  cv_.notify_all();
  in_a_hurry_++;
  if (thread_.joinable()) {
    thread_.join();
  }
  finish();
}

void DeferredFree::loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (sets_.empty()) {
      cv_.wait(lock);
      continue;
    }
    if (Clock::now() < sets_.front().until) {
      cv_.wait_until(lock, Clock::time_point(sets_.front().until));
      continue;
    }
    Set set = std::move(sets_.front());
    sets_.pop_front();
    freeing_ = true;
    being_freed_ = set.bytes();
    lock.unlock();
    free_gently(set);
    lock.lock();
    freeing_ = false;
    being_freed_ = 0;
    any_ = !sets_.empty();
    cv_.notify_all();
  }
}

} // namespace mlx::core::vulkan
