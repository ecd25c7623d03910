#include "runtime/pins.h"

#include <iterator>
#include <thread>

namespace mlx::core::vulkan {

uint64_t PinState::take_when_free() {
  // The other thread holds it for a few instructions, unless it is preempted.
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

uint64_t Pins::new_number(uint32_t stream) {
  // 31 bits: fewer batches than that are alive at once.
  static std::atomic<uint32_t> last{0};
  uint32_t n = last.fetch_add(1, std::memory_order_relaxed) & 0x7fffffffu;
  return uint64_t(stream) << 32 | (n + 1u);
}

void Pins::collect() {
  for (PinState* k : lists_.alone) {
    uint64_t by = k->by_.load(std::memory_order_relaxed);
    if (by != number_ && by != PinState::changing) {
      continue; // unpinned, or pinned by a later batch since
    }
    by = k->take();
    if (by == number_) {
      lists_.objects.push_back(std::move(k->owner_));
      by = PinState::nobody;
    }
    k->give(by);
  }
  lists_.alone.clear();
}

Pins::Lists Pins::release() {
  collect(); // before the owners go, since a PinState may lie in one
  lists_.objects.clear();
  return std::move(lists_);
}

void Pins::hand_over(Pins& later) {
  for (PinState* k : lists_.alone) {
    uint64_t by = k->take();
    if (by == number_) {
      by = later.number_;
      later.lists_.alone.push_back(k);
    }
    k->give(by);
  }
  lists_.alone.clear();
  auto& to = later.lists_.objects;
  to.insert(
      to.end(),
      std::make_move_iterator(lists_.objects.begin()),
      std::make_move_iterator(lists_.objects.end()));
  lists_.objects.clear();
}

} // namespace mlx::core::vulkan
