// Who keeps memory alive until the GPU is done with it: each batch has a
// Keeper, which lets go when the batch goes.
//
// What one stream alone uses has a single keeper, which moves from batch to
// batch and which let_go() takes away. So an array that its stream still reads
// counts as unshared to MLX and can be donated: what writes it comes later on
// the same queue. Free of Vulkan. Threads: keep() is for the one that fills the
// batch; a buffer's side is one word, which any thread may change, and no call
// takes a lock: thousands of these are made a token.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace mlx::core::vulkan {

// A buffer's side of it.
class Kept {
  friend class Keeper;
  static constexpr uint64_t nobody = 0, changing = ~0ull;

  // Takes the word: who does may change owner_ until it stores another.
  uint64_t take() {
    uint64_t by = by_.exchange(changing, std::memory_order_acquire);
    return by != changing ? by : take_when_free();
  }
  uint64_t take_when_free();
  void give(uint64_t by) {
    by_.store(by, std::memory_order_release);
  }

  std::atomic<uint64_t> by_{nobody}; // a keeper's number
  std::shared_ptr<void> owner_;
};

class Keeper {
 public:
  explicit Keeper(uint32_t stream) : number_(new_number(stream)) {}
  ~Keeper() {
    release();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void keep(std::shared_ptr<void> object) {
    lists_.objects.push_back(std::move(object));
  }
  // Keeps `buffer`, through its owner; alone, unless another stream does too.
  template <typename T>
  void keep(Kept& buffer, const std::shared_ptr<T>& owner) {
    if (buffer.by_.load(std::memory_order_relaxed) == number_) {
      return;
    }
    uint64_t by = buffer.take();
    if (by == Kept::nobody) {
      buffer.owner_ = owner;
    } else if (stream_of(by) != stream_of(number_)) {
      buffer.give(by);
      lists_.objects.push_back(owner);
      return;
    }
    buffer.give(number_);
    lists_.alone.push_back(&buffer);
  }
  // Whatever keeps `buffer` alone for `stream` does so no more: the caller owns
  // it until it is kept again.
  static void let_go(Kept& buffer, uint32_t stream) {
    uint64_t by = buffer.by_.load(std::memory_order_relaxed);
    if (by == Kept::nobody ||
        (by != Kept::changing && stream_of(by) != stream)) {
      return;
    }
    by = buffer.take();
    if (by == Kept::nobody || stream_of(by) != stream) {
      return buffer.give(by);
    }
    auto owner = std::move(buffer.owner_); // the caller holds another
    buffer.give(Kept::nobody);
  }
  // Of a batch that never ran: an earlier one, of which `later` is the last on
  // the queue, may still read what this one keeps alone.
  void hand_over(Keeper& later);

  struct Lists {
    std::vector<std::shared_ptr<void>> objects;
    std::vector<Kept*> alone; // of which this is or was the single keeper
  };
  // Lets go of all. The lists are empty but for their memory, for another
  // keeper to use().
  Lists release();
  void use(Lists&& empty) {
    lists_ = std::move(empty);
  }

  bool empty() const {
    return lists_.objects.empty() && lists_.alone.empty();
  }

 private:
  // The stream above a number of its own; never nobody or changing.
  static uint64_t new_number(uint32_t stream);
  static uint32_t stream_of(uint64_t number) {
    return static_cast<uint32_t>(number >> 32);
  }

  uint64_t number_;
  Lists lists_;
};

} // namespace mlx::core::vulkan
