// Ownership of an array's memory, for each form of MLX's array::Data.
#pragma once

#include <type_traits>

#include "mlx/array.h"

namespace mlx::core::vulkan {

// Whether the allocator frees the memory. If MLX does not record this, a plain
// function counts as allocator::free, since others pass closures.
template <typename Data>
bool is_owned(const Data& data) {
  if constexpr (requires { data.is_owned(); }) {
    return data.is_owned();
  } else {
    return data.d.template target<void (*)(allocator::Buffer)>();
  }
}

// Gives `a` memory that nobody frees.
template <typename Array>
void set_borrowed(Array& a, allocator::Buffer buffer) {
  auto keep = [](allocator::Buffer) {};
  if constexpr (requires { a.set_data(buffer, keep); }) {
    a.set_data(buffer, keep);
  } else {
    a.set_data(typename Array::Data(buffer, keep));
  }
}

} // namespace mlx::core::vulkan
