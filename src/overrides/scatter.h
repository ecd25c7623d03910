// Replaces the size_of() that ops.cpp calls: a refusal of GPU streams.
//
// MLX's scatter throws on a GPU stream where an item has 8 bytes, except for
// sums of complex numbers. The kernels have no such limit
// (src/ops/scatter.cpp).
//
// What MLX could offer: docs/dev/upstream.md, "Refusals of GPU streams".
#pragma once

// All headers of ops.cpp come first, so that the macro changes its own text
// alone.
#include <compare>

#include "overrides/make_shared.h"

namespace mlx::core {

// A number of bytes that differs from the literal 8.
struct ItemBytes {
  int n;
  auto operator<=>(const ItemBytes&) const = default;
  bool operator==(const ItemBytes&) const = default;
  int operator/(const ItemBytes& other) const {
    return n / other.n;
  }
  bool operator==(int other) const {
    return n == other && other != 8;
  }
};

inline ItemBytes item_bytes(const Dtype& t) {
  return {size_of(t)};
}

} // namespace mlx::core
#define size_of item_bytes
