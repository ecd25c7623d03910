#include "runtime/free_lists.h"

#include <utility>

namespace mlx::core::vulkan {

Buffer* FreeLists::unlink(Buffer** link) {
  Buffer* b = *link;
  *link = std::exchange(b->next_free, nullptr);
  bytes_ -= b->size;
  return b;
}

Buffer* FreeLists::take(BufferKind kind, size_t size) {
  if (size == 0 || size > largest) {
    return nullptr;
  }
  auto& heads = heads_[static_cast<size_t>(kind)];
  size_t c = class_of(size);
  // Of one class some are smaller. What a program asks for again has the very
  // size.
  constexpr int looks = 8;
  Buffer** link = &heads[c];
  for (int i = 0; i < looks && *link; ++i, link = &(*link)->next_free) {
    if ((*link)->size >= size) {
      return unlink(link);
    }
  }
  return heads[c + 1] ? unlink(&heads[c + 1]) : nullptr;
}

bool FreeLists::put(Buffer* buffer) {
  if (buffer->size > largest || bytes_ + buffer->size > most) {
    return false;
  }
  Buffer*& head =
      heads_[static_cast<size_t>(buffer->kind)][class_of(buffer->size)];
  buffer->next_free = std::exchange(head, buffer);
  bytes_ += buffer->size;
  return true;
}

Buffer* FreeLists::take_all() {
  Buffer* all = nullptr;
  for (auto& heads : heads_) {
    for (Buffer*& head : heads) {
      while (head) {
        Buffer* b = unlink(&head);
        b->next_free = std::exchange(all, b);
      }
    }
  }
  return all;
}

} // namespace mlx::core::vulkan
