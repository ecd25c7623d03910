#pragma once

#include <type_traits>

namespace mlx::core::vulkan {

// a / b, rounded up, of the wider type.
template <typename A, typename B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return a / b + (a % b != 0);
}

} // namespace mlx::core::vulkan
