// Pins keep memory alive until the GPU has finished with it. Each batch has a
// Pins object, which releases its memory when the batch is destroyed.
//
// A buffer that a single stream uses is pinned by the newest batch alone, and
// unpin() removes that pin. MLX therefore sees an array that its own stream
// still reads as unshared and can donate it: the writer runs later on the same
// queue. Free of Vulkan. Threads: keep() is called by the thread that fills the
// batch. The state of a buffer is one atomic word that any thread may change;
// no call takes a lock, because a token makes thousands of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace mlx::core::vulkan {

// The pin of one buffer by a single stream.
class PinState {
  friend class Pins;
  static constexpr uint64_t nobody = 0, changing = ~0ull;

  // Locks the word: the caller may change owner_ until it calls give().
  uint64_t take() {
    uint64_t by = by_.exchange(changing, std::memory_order_acquire);
    return by != changing ? by : take_when_free();
  }
  uint64_t take_when_free();
  void give(uint64_t by) {
    by_.store(by, std::memory_order_release);
  }

  std::atomic<uint64_t> by_{nobody}; // the number of a Pins
  std::shared_ptr<void> owner_;
};

class Pins {
 public:
  explicit Pins(uint32_t stream) : number_(new_number(stream)) {}
  ~Pins() {
    release();
  }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void keep(std::shared_ptr<void> object) {
    lists_.objects.push_back(std::move(object));
  }
  // Pins `buffer` by its owner. A buffer that another stream has pinned is
  // shared and cannot be unpinned.
  template <typename T>
  void keep(PinState& buffer, const std::shared_ptr<T>& owner) {
    if (buffer.by_.load(std::memory_order_relaxed) == number_) {
      return;
    }
    uint64_t by = buffer.take();
    if (by == PinState::nobody) {
      buffer.owner_ = owner;
    } else if (stream_of(by) != stream_of(number_)) {
      buffer.give(by);
      lists_.objects.push_back(owner);
      return;
    }
    buffer.give(number_);
    lists_.alone.push_back(&buffer);
  }
  // Removes the single pin of `buffer` by `stream`. The caller must own the
  // buffer until it is pinned again.
  static void unpin(PinState& buffer, uint32_t stream) {
    uint64_t by = buffer.by_.load(std::memory_order_relaxed);
    if (by == PinState::nobody ||
        (by != PinState::changing && stream_of(by) != stream)) {
      return;
    }
    by = buffer.take();
    if (by == PinState::nobody || stream_of(by) != stream) {
      return buffer.give(by);
    }
    auto owner = std::move(buffer.owner_); // the caller holds another
    buffer.give(PinState::nobody);
  }
  // Moves the pins of a batch that never ran to `later`, the last batch on the
  // queue: earlier batches may still use the buffers.
  void hand_over(Pins& later);
  // Takes the owners of what this object alone pins. Call in the order of the
  // batches: a later one may free what an earlier one has pinned before.
  void collect();
  // Whether collect() frees memory whose pin is `wanted`: it has no other
  // owner.
  template <typename F>
  bool frees(F&& wanted) {
    return std::any_of(
        lists_.alone.begin(), lists_.alone.end(), [&](PinState* k) {
          if (k->by_.load(std::memory_order_relaxed) != number_) {
            return false; // unpinned, or pinned by a later batch since
          }
          uint64_t by = k->take();
          bool last = by == number_ && k->owner_.use_count() == 1 && wanted(*k);
          k->give(by);
          return last;
        });
  }

  struct Lists {
    std::vector<std::shared_ptr<void>> objects;
    std::vector<PinState*> alone; // pinned by this object alone, now or before
  };
  // Releases all pins. Returns the empty lists, whose memory use() can reuse.
  Lists release();
  void use(Lists&& empty) {
    lists_ = std::move(empty);
  }

  bool empty() const {
    return lists_.objects.empty() && lists_.alone.empty();
  }

 private:
  // The stream's id in the upper half, a serial number in the lower one; never
  // `nobody` or `changing`.
  static uint64_t new_number(uint32_t stream);
  static uint32_t stream_of(uint64_t number) {
    return static_cast<uint32_t>(number >> 32);
  }

  uint64_t number_;
  Lists lists_;
};

} // namespace mlx::core::vulkan
