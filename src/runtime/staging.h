// Mapped host memory through which files reach arrays on the device: a few
// blocks of one size, which loads take in turn. So a load of any size needs no
// more of the host's memory than these. Thread-safe. Free of MLX.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/allocation.h"

namespace mlx::core::vulkan {

class Device;

class Staging {
 public:
  static constexpr size_t block_size = 16 << 20; // bytes
  static constexpr size_t most = 8; // blocks in use

  explicit Staging(Device& device) : device_(device) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A block, which returns with the last pointer to it. Waits while `most` are
  // in use, but not for ever: the batches that use them may wait for what the
  // caller is about to do. Throws VkError as Memory::allocate() does.
  std::shared_ptr<Allocation> take();

  // Waits until no block is in use, or `limit` is over. At exit.
  void drain(std::chrono::seconds limit);

 private:
  void give_back(const Allocation& block);

  Device& device_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Allocation> free_; // at most `most`; one stays between loads
  size_t in_use_ = 0;
};

} // namespace mlx::core::vulkan
