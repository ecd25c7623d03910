#include "runtime/keeper.h"

#include <mutex>

namespace mlx::core::vulkan {

namespace {
std::mutex& keeper_mutex() {
  static auto* mutex = new std::mutex; // leaked: batches end in any order
  return *mutex;
}
} // namespace

Keeper::~Keeper() {
  std::vector<std::shared_ptr<void>> last; // freed after the lock
  std::lock_guard lock(keeper_mutex());
  for (Kept* k : alone_) {
    if (k->by_ == this) {
      k->by_ = nullptr;
      last.push_back(std::move(k->owner_));
    }
  }
}

void Keeper::keep(Kept& buffer, std::shared_ptr<void> owner) {
  {
    std::lock_guard lock(keeper_mutex());
    if (buffer.by_ == this) {
      return;
    }
    if (!buffer.by_ || buffer.by_->stream_ == stream_) {
      if (!buffer.by_) {
        buffer.owner_ = std::move(owner);
      }
      buffer.by_ = this;
      alone_.push_back(&buffer);
      return;
    }
  }
  objects_.push_back(std::move(owner));
}

void Keeper::let_go(Kept& buffer, uint32_t stream) {
  std::lock_guard lock(keeper_mutex());
  if (buffer.by_ && buffer.by_->stream_ == stream) {
    buffer.by_ = nullptr;
    buffer.owner_.reset(); // the caller holds another
  }
}

void Keeper::hand_over(Keeper& later) {
  std::lock_guard lock(keeper_mutex());
  for (Kept* k : alone_) {
    if (k->by_ == this) {
      k->by_ = &later;
      later.alone_.push_back(k);
    }
  }
  alone_.clear();
}

} // namespace mlx::core::vulkan
