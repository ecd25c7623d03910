#include "runtime/staging.h"

#include <algorithm>

#include "runtime/device.h"
#include "runtime/recorder.h"

namespace mlx::core::vulkan {

namespace {
constexpr std::chrono::milliseconds poll_interval(1);
// Far longer than the device takes for all blocks.
constexpr std::chrono::seconds patience(2);
} // namespace

Staging::~Staging() {
  for (auto& block : free_) {
    device_.memory().free(block);
  }
}

std::shared_ptr<Allocation> Staging::take() {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (free_.empty() && in_use_ >= most && Clock::now() < end) {
    if (returned_.wait_for(lock, poll_interval) == std::cv_status::timeout) {
      lock.unlock();
      device_.recorder().retirer().retire();
      lock.lock();
    }
  }
  Allocation block;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  }
  ++in_use_;
  lock.unlock();
  if (!block.buffer) {
    try {
      block = device_.memory().allocate_host(block_size);
    } catch (...) {
      give_back({});
      throw;
    }
  }
  return {new Allocation(block), [this](Allocation* a) {
            give_back(*a);
            delete a;
          }};
}

void Staging::give_back(const Allocation& block) {
  std::vector<Allocation> unused;
  {
    std::lock_guard lock(mutex_);
    --in_use_;
    if (block.buffer) {
      free_.push_back(block);
    }
    size_t keep = in_use_ == 0 ? 1 : most - std::min(most, in_use_);
    while (free_.size() > keep) {
      unused.push_back(free_.back());
      free_.pop_back();
    }
  }
  returned_.notify_all();
  for (auto& each : unused) {
    device_.memory().free(each);
  }
}

void Staging::drain(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  bool lost = device_.timeline().lost(); // nothing returns
  returned_.wait_for(lock, limit, [&] { return lost || in_use_ == 0; });
}

} // namespace mlx::core::vulkan
