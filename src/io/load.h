#pragma once

#include "mlx/io/load.h"

namespace mlx::core::vulkan {

// A reader that several threads may use at once, as MLX's of files.
class ParallelReader : public io::Reader {};

} // namespace mlx::core::vulkan
