#pragma once

#include <optional>

#include "mlx/array.h"

namespace mlx::core::vulkan {

// The left indices of a gather_qmm that was given none, from earlier calls;
// nothing where MLX has to make them.
std::optional<array>
left_indices(const array& x, const std::optional<array>& right, bool sorted);

} // namespace mlx::core::vulkan
