#include "backend/leaving.h"

#include <utility>

#include "runtime/device.h"

namespace mlx::core::vulkan {

size_t Leaving::Set::bytes() const {
  size_t n = 0;
  for (auto& c : caches) {
    n += c ? c->cache_size() : 0;
  }
  for (auto* b = list; b; b = b->next_free) {
    n += b->size;
  }
  return n;
}

void Leaving::add(Caches caches, Buffer* list) {
  {
    std::lock_guard lock(mutex_);
    if (last_) {
      before_.push_back(std::move(*last_));
    }
    last_ = std::make_unique<Set>(Set{std::move(caches), list});
    until_ = std::chrono::steady_clock::now() + moment;
    any_ = true;
    if (!stopped_ && !thread_.joinable()) {
      thread_ = std::thread([this] { loop(); });
    }
    if (!stopped_) {
      cv_.notify_all();
      return;
    }
  }
  finish();
}

Buffer* Leaving::find(BufferKind kind, size_t size) {
  std::lock_guard lock(mutex_);
  auto* cache = last_ ? last_->caches[static_cast<size_t>(kind)].get() : nullptr;
  return cache ? cache->reuse_from_cache(size) : nullptr;
}

size_t Leaving::count() const {
  std::lock_guard lock(mutex_);
  size_t n = last_ ? last_->bytes() : 0;
  for (auto& set : before_) {
    n += set.bytes();
  }
  return n;
}

void Leaving::free(std::vector<Set> sets) {
  for (auto& set : sets) {
    while (set.list) {
      destroy_(std::exchange(set.list, set.list->next_free));
    }
  }
}

void Leaving::finish() {
  // There the thread is gone, and the driver's objects cannot be freed.
  if (!any_ || forked_from_started_device()) {
    return;
  }
  std::unique_lock lock(mutex_);
  auto sets = std::move(before_);
  before_.clear();
  if (last_) {
    sets.push_back(std::move(*last_));
    last_.reset();
  }
  lock.unlock();
  free(std::move(sets));
  lock.lock();
  cv_.wait(lock, [this] { return !freeing_; });
  any_ = last_ || !before_.empty();
}

void Leaving::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  cv_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  finish();
}

void Leaving::loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (last_ && std::chrono::steady_clock::now() >= until_) {
      before_.push_back(std::move(*last_));
      last_.reset();
    }
    if (!before_.empty()) {
      auto sets = std::move(before_);
      before_.clear();
      freeing_ = true;
      lock.unlock();
      free(std::move(sets));
      lock.lock();
      freeing_ = false;
      any_ = last_ || !before_.empty();
      cv_.notify_all();
    } else if (last_) {
      cv_.wait_until(lock, until_);
    } else {
      cv_.wait(lock);
    }
  }
}

} // namespace mlx::core::vulkan
