// Who keeps memory alive until the GPU is done with it: each batch has a
// Keeper, which lets go when the batch goes.
//
// What one stream alone uses has a single keeper, which moves from batch to
// batch and which let_go() takes away. So an array that its stream still reads
// counts as unshared to MLX and can be donated: what writes it comes later on
// the same queue. Free of Vulkan. Threads: keep() is for the one that fills the
// batch; the rest takes one lock of the process.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace mlx::core::vulkan {

class Keeper;

// A buffer's side of it.
class Kept {
  friend class Keeper;
  std::shared_ptr<void> owner_;
  Keeper* by_ = nullptr;
};

class Keeper {
 public:
  explicit Keeper(uint32_t stream) : stream_(stream) {
    objects_.reserve(256);
  }
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void keep(std::shared_ptr<void> object) {
    objects_.push_back(std::move(object));
  }
  // Keeps `buffer`, through its owner; alone, unless another stream does too.
  void keep(Kept& buffer, std::shared_ptr<void> owner);
  // Whatever keeps `buffer` alone for `stream` does so no more: the caller owns
  // it until it is kept again.
  static void let_go(Kept& buffer, uint32_t stream);
  // Of a batch that never ran: an earlier one, of which `later` is the last on
  // the queue, may still read what this one keeps alone.
  void hand_over(Keeper& later);

  bool empty() const {
    return objects_.empty() && alone_.empty();
  }

 private:
  uint32_t stream_;
  std::vector<std::shared_ptr<void>> objects_;
  std::vector<Kept*> alone_; // this is or was their single keeper
};

} // namespace mlx::core::vulkan
