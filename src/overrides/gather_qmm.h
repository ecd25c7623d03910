#pragma once

#include <optional>

#include "mlx/array.h"

namespace mlx::core::vulkan {

// Left indices kept from earlier calls, for a gather_qmm that was given none;
// empty if MLX must compute them.
std::optional<array>
left_indices(const array& x, const std::optional<array>& right, bool sorted);

} // namespace mlx::core::vulkan
