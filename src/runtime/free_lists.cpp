#include "runtime/free_lists.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace mlx::core::vulkan {

Buffer* FreeLists::unlink(Buffer** link) {
  Buffer* b = *link;
  *link = std::exchange(b->next_free, nullptr);
  bytes_ -= b->size;
  reserved_ = std::min(reserved_, bytes_);
  return b;
}

Buffer* FreeLists::take(BufferKind kind, size_t size) {
  if (size == 0 || size > largest) {
    return nullptr;
  }
  auto& heads = heads_[static_cast<size_t>(kind)];
  size_t c = class_of(size);
  // Some buffers of the same class are smaller. Sizes that a program asks for
  // again are found exactly.
  constexpr int looks = 8;
  Buffer** link = &heads[c];
  for (int i = 0; i < looks && *link; ++i, link = &(*link)->next_free) {
    if ((*link)->size >= size) {
      return unlink(link);
    }
  }
  for (size_t larger = c + 1; larger < c + 4; ++larger) {
    if (heads[larger]) {
      return unlink(&heads[larger]);
    }
  }
  return nullptr;
}

bool FreeLists::put(Buffer* buffer) {
  if (buffer->size > largest || bytes_ + buffer->size > most) {
    return false;
  }
  Buffer*& head =
      heads_[static_cast<size_t>(buffer->kind.load())][class_of(buffer->size)];
  buffer->next_free = std::exchange(head, buffer);
  bytes_ += buffer->size;
  return true;
}

Buffer* FreeLists::take_down_to(size_t bytes) {
  Buffer* taken = nullptr;
  for (auto& heads : heads_) {
    // The largest first, so that as many as possible stay.
    for (Buffer*& head : std::views::reverse(heads)) {
      while (head && bytes_ > bytes) {
        Buffer* b = unlink(&head);
        b->next_free = std::exchange(taken, b);
      }
    }
  }
  return taken;
}

Buffer* FreeLists::take_all_but_reserve() {
  Buffer* taken = take_down_to(reserve);
  reserved_ = bytes_;
  return taken;
}

} // namespace mlx::core::vulkan
