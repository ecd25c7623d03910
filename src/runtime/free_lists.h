// Unused small buffers for reuse, in intrusive lists by kind and size class:
// take() and put() neither allocate nor search. A decode step calls both some
// hundred times. The owner locks. Free of MLX.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "runtime/memory.h"

namespace mlx::core::vulkan {

class FreeLists {
 public:
  static constexpr size_t largest = 64 << 10; // bytes of a buffer
  static constexpr size_t most = 64 << 20; // bytes in all lists
  static constexpr size_t reserve = 8 << 20; // bytes that may stay, see below

  // A buffer of at least `size` and less than twice `size` bytes; null if there
  // is none.
  Buffer* take(BufferKind kind, size_t size);
  // Returns false if the buffer is too large or the lists are full.
  bool put(Buffer* buffer);
  // Removes all buffers; a list linked by next_free.
  Buffer* take_all() {
    return take_down_to(0);
  }
  // Removes all buffers except a reserve, which bytes() no longer counts.
  // MLX-LM clears the cache between a prompt and its answer; freeing and
  // creating a thousand small buffers takes 3 ms.
  Buffer* take_all_but_reserve();

  // Bytes in the lists without the reserve.
  size_t bytes() const {
    return bytes_ - reserved_;
  }

 private:
  // Four size classes between consecutive powers of two.
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
  size_t reserved_ = 0; // part of bytes_
};

} // namespace mlx::core::vulkan
