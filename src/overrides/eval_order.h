// The order in which eval() encodes a graph.
#pragma once

#include <vector>

#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::vulkan {

// The arrays that an eval of `outputs` would encode, one of each group of
// siblings. Empty if the graph does not belong to `stream` alone.
std::vector<array> eval_order(std::vector<array> outputs, Stream stream);

} // namespace mlx::core::vulkan
