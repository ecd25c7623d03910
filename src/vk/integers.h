#pragma once

#include <type_traits>

namespace mlx::core::vulkan {

// a / b, rounded up, of the wider type.
template <typename A, typename B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return a / b + (a % b != 0);
}

// a, or the next multiple of b.
template <typename A, typename B>
constexpr std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

} // namespace mlx::core::vulkan
