// Loop nests in argument blocks: host side of kernels/common/nest.h.
#pragma once

#include <algorithm>

#include "kernels/common/nest.h"
#include "ops/view.h"

namespace mlx::core::vulkan {

// Nest over collapsed axes, at most NDIM.
template <int NDIM>
Nest<NDIM> nest_args(const Shape& shape, const Strides& strides) {
  Nest<NDIM> nest{static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), nest.shape);
  std::copy(strides.begin(), strides.end(), nest.strides);
  return nest;
}

} // namespace mlx::core::vulkan
