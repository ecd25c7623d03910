// Loop nests as members of argument blocks: the host side of
// kernels/common/nest.h.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/common/nest.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Of collapsed axes, NDIM at most.
template <int NDIM>
Nest<NDIM> nest_args(const Shape& shape, const Strides& strides) {
  Nest<NDIM> nest{static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), nest.shape);
  std::copy(strides.begin(), strides.end(), nest.strides);
  return nest;
}

// Calls f with that one of NDIMS, as a constant, which `ndim` is.
template <int... NDIMS, typename F>
void with_ndim(int ndim, F&& f) {
  ((ndim == NDIMS ? f(std::integral_constant<int, NDIMS>{}) : void()), ...);
}

} // namespace mlx::core::vulkan
