// Small buffers that nobody uses, to be used again: lists by kind and size that
// run through the buffers themselves, so that neither taking nor putting back
// allocates or searches. A decode step does both some hundred times. Whoever
// has it locks it. Free of MLX.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "runtime/memory.h"

namespace mlx::core::vulkan {

class FreeLists {
 public:
  static constexpr size_t largest = 64 << 10; // bytes of a buffer
  static constexpr size_t most = 64 << 20; // bytes of all
  static constexpr size_t reserve = 8 << 20; // bytes that trim() may leave

  // A buffer of `size` bytes or somewhat more (less than twice as many); null
  // if there is none.
  Buffer* take(BufferKind kind, size_t size);
  // False: too large, or there is enough already.
  bool put(Buffer* buffer);
  // All of them, as a list through next_free.
  Buffer* take_all() {
    return take_down_to(0);
  }
  // The same but for a reserve, which bytes() does not count from now on:
  // MLX-LM clears the cache between a prompt and its answer, and to destroy a
  // thousand small buffers and make them again took 3 ms.
  Buffer* take_all_but_reserve();

  // Of those that are no reserve.
  size_t bytes() const {
    return bytes_ - reserved_;
  }

 private:
  // Four classes between a power of two and the next.
  static constexpr size_t classes = 4 * 17 + 1;
  static size_t class_of(size_t size) {
    size_t log = std::bit_width(size) - 1;
    size_t quarter = log < 2 ? 0 : (size >> (log - 2)) & 3;
    return 4 * log + quarter;
  }
  Buffer* unlink(Buffer** link);
  Buffer* take_down_to(size_t bytes);

  std::array<std::array<Buffer*, classes + 3>, buffer_kinds> heads_{};
  size_t bytes_ = 0;
  size_t reserved_ = 0; // of them
};

} // namespace mlx::core::vulkan
