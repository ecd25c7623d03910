#pragma once

#include "mlx/io/load.h"

namespace mlx::core::vulkan {

// Whether arrays of files are made on GPU streams, unless the caller names
// another: the GPU is the default device and its arrays have two sides. Does
// not start the device.
bool files_go_to_gpu();

// A reader that several threads may use at once, as MLX's of files.
class ParallelReader : public io::Reader {};

} // namespace mlx::core::vulkan
