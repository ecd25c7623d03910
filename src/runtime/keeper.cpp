#include "runtime/keeper.h"

#include <thread>

namespace mlx::core::vulkan {

uint64_t Kept::take_when_free() {
  // Some instructions of another thread, unless that one was just interrupted.
  for (int tries = 0;; ++tries) {
    uint64_t by = by_.exchange(changing, std::memory_order_acquire);
    if (by != changing) {
      return by;
    }
    if (tries >= 64) {
      std::this_thread::yield();
    }
  }
}

uint64_t Keeper::new_number(uint32_t stream) {
  // 31 bits: as many batches are never alive at once.
  static std::atomic<uint32_t> last{0};
  uint32_t n = last.fetch_add(1, std::memory_order_relaxed) & 0x7fffffffu;
  return uint64_t(stream) << 32 | (n + 1u);
}

Keeper::Lists Keeper::release() {
  // Freed only after the last look at a buffer, which may go with its owner.
  for (Kept* k : lists_.alone) {
    uint64_t by = k->by_.load(std::memory_order_relaxed);
    if (by != number_ && by != Kept::changing) {
      continue; // let go, or a later batch's: it never becomes ours again
    }
    by = k->take();
    if (by == number_) {
      lists_.objects.push_back(std::move(k->owner_));
      by = Kept::nobody;
    }
    k->give(by);
  }
  lists_.alone.clear();
  lists_.objects.clear();
  return std::move(lists_);
}

void Keeper::hand_over(Keeper& later) {
  for (Kept* k : lists_.alone) {
    uint64_t by = k->take();
    if (by == number_) {
      by = later.number_;
      later.lists_.alone.push_back(k);
    }
    k->give(by);
  }
  lists_.alone.clear();
}

} // namespace mlx::core::vulkan
