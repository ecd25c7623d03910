#include "runtime/memory_cache.h"

#include <ranges>
#include <utility>

namespace mlx::core::vulkan {

Buffer* MemoryCache::unlink(Buffer** link) {
  Buffer* b = *link;
  *link = std::exchange(b->next_free, nullptr);
  small_bytes_ -= b->size;
  reserved_ = std::min(reserved_, small_bytes_);
  return b;
}

Buffer* MemoryCache::take_small(BufferKind kind, size_t size) {
  auto& heads = small_[static_cast<size_t>(kind)];
  size_t c = class_of(size);
  // Some buffers of the same class are smaller. Sizes that a program asks for
  // again are found exactly.
  constexpr int looks = 8;
  Buffer** link = &heads[c];
  for (int i = 0; i < looks && *link; ++i, link = &(*link)->next_free) {
    if ((*link)->size >= size) {
      return unlink(link);
    }
  }
  for (size_t larger = c + 1; larger < c + 4; ++larger) {
    if (heads[larger]) {
      return unlink(&heads[larger]);
    }
  }
  return nullptr;
}

Buffer* MemoryCache::take(BufferKind kind, size_t size) {
  std::lock_guard lock(mutex_);
  if (size <= small) {
    if (auto* b = size > 0 ? take_small(kind, size) : nullptr) {
      return b;
    }
  }
  auto it = by_size_.lower_bound({kind, size, 0});
  if (it == by_size_.end() || it->second->kind != kind ||
      !fits(it->second->size, size)) {
    return nullptr;
  }
  auto* b = it->second;
  remove(b);
  return b;
}

void MemoryCache::put(Buffer* b) {
  Lock lock(mutex_);
  if (counted() + b->size > limit_) {
    lock.unlock();
    destroy_(b);
  } else if (b->size <= small && small_bytes_ + b->size <= most_small) {
    auto& head = small_[static_cast<size_t>(b->kind.load())][class_of(b->size)];
    b->next_free = std::exchange(head, b);
    small_bytes_ += b->size;
  } else {
    add(b);
  }
}

void MemoryCache::add(Buffer* b) {
  b->cached_at = next_age_++;
  by_size_.emplace(key_of(*b), b);
  by_age_.emplace_hint(by_age_.end(), b->cached_at, b);
  large_bytes_ += b->size;
}

void MemoryCache::remove(Buffer* b) {
  by_size_.erase(key_of(*b));
  by_age_.erase(b->cached_at);
  large_bytes_ -= b->size;
  if (!clears_.empty() && b->cached_at < clears_.back().before) {
    evicted_ -= b->size;
  }
}

Buffer* MemoryCache::take_small_down_to(size_t bytes, Buffer* list) {
  for (auto& heads : small_) {
    for (Buffer*& head : std::views::reverse(heads)) {
      while (head && small_bytes_ > bytes) {
        Buffer* b = unlink(&head);
        b->next_free = std::exchange(list, b);
      }
    }
  }
  return list;
}

Buffer* MemoryCache::take_oldest(Buffer* list) {
  Buffer* b = by_age_.begin()->second;
  remove(b);
  b->next_free = list;
  return b;
}

Buffer* MemoryCache::take_evicted(uint64_t before, size_t bytes) {
  Buffer* list = nullptr;
  while (bytes > 0 && !by_age_.empty() && by_age_.begin()->first < before) {
    list = take_oldest(list);
    bytes -= std::min(bytes, list->size);
  }
  return list;
}

// The oldest large ones first, then all small ones.
Buffer* MemoryCache::take_down_to(size_t bytes) {
  Buffer* list = nullptr;
  while (counted() > bytes && !by_age_.empty()) {
    list = take_oldest(list);
  }
  return counted() > bytes ? take_small_down_to(0, list) : list;
}

void MemoryCache::make_room(size_t size, size_t most) {
  Lock lock(mutex_);
  if (counted() + evicted_ + freeing_ > most) {
    finish(lock);
    free(lock, take_down_to(most));
  } else if (size > small && evicted_ > 0) {
    free(lock, take_evicted(clears_.back().before, size));
  }
}

void MemoryCache::clear(bool now) {
  Lock lock(mutex_);
  Buffer* list = take_small_down_to(reserve);
  reserved_ = small_bytes_;
  while (list) {
    add(std::exchange(list, std::exchange(list->next_free, nullptr)));
  }
  if (evicted_ == large_bytes_) {
    return;
  }
  evicted_ = large_bytes_;
  clears_.push_back({next_age_, Clock::now() + moment});
  if (now || stopped_ || clears_.size() > most_clears) {
    return finish(lock);
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { loop(); });
  }
  changed_.notify_all();
}

void MemoryCache::free_all() {
  Lock lock(mutex_);
  finish(lock);
  free(lock, take_small_down_to(0, take_down_to(0)));
}

size_t MemoryCache::bytes() {
  Lock lock(mutex_);
  finish(lock);
  return counted();
}

size_t MemoryCache::set_limit(size_t limit) {
  Lock lock(mutex_);
  finish(lock);
  std::swap(limit_, limit);
  Buffer* list = take_down_to(limit_);
  free(lock, limit_ < reserve ? take_small_down_to(0, list) : list);
  return limit;
}

void MemoryCache::lock() {
  Lock lock(mutex_);
  waiting_++;
  changed_.wait(lock, [this] { return freeing_ == 0; });
  waiting_--;
  lock.release();
}

void MemoryCache::free(Lock& lock, Buffer* list) {
  size_t bytes = 0;
  for (auto* b = list; b; b = b->next_free) {
    bytes += b->size;
  }
  freeing_ += bytes;
  lock.unlock();
  while (list) {
    destroy_(std::exchange(list, list->next_free));
  }
  lock.lock();
  freeing_ -= bytes;
  if (waiting_ > 0) {
    changed_.notify_all();
  }
}

void MemoryCache::finish(Lock& lock) {
  if (!clears_.empty()) {
    Buffer* list = take_evicted(clears_.back().before, ~size_t(0));
    clears_.clear();
    free(lock, list);
  }
  waiting_++;
  changed_.wait(lock, [this] { return freeing_ == 0; });
  waiting_--;
}

void MemoryCache::stop() {
  Lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  lock.unlock();
  if (thread_.joinable()) {
    thread_.join();
  }
  lock.lock();
  finish(lock);
}

// A slow call means that the driver returned memory to the system and blocked
// other callers; they get their turn before the next call.
void MemoryCache::loop() {
  Lock lock(mutex_);
  while (!stopped_) {
    if (clears_.empty()) {
      changed_.wait(lock);
    } else if (auto until = clears_.front().until; Clock::now() < until) {
      changed_.wait_until(lock, until);
    } else if (auto* one = take_evicted(clears_.front().before, 1)) {
      auto begun = Clock::now();
      free(lock, one);
      auto took = Clock::now() - begun;
      if (took > std::chrono::microseconds(200) && !stopped_) {
        changed_.wait_for(lock, 2 * took);
      }
    } else {
      clears_.pop_front();
    }
  }
}

} // namespace mlx::core::vulkan
