// Counts, for each shape, the kernel that was chosen and the reason why no
// faster one was; printed at exit (MLX_VK_DEBUG=paths).
#pragma once

#include <string>

namespace mlx::core::vulkan {

// Counts one call. `title` names the list, `shape` the row; thread-safe.
void count_path(
    const char* title,
    const std::string& shape,
    const std::string& path,
    const char* why);

} // namespace mlx::core::vulkan
