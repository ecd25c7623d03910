// Where the weights of files go on a card that has no room for all of them:
// decided before the first is read, from the bytes of all that are waiting.
// Stacks of experts, of which a step reads a few, stay in the host's memory
// first. Threads: any.
#pragma once

#include <vector>

#include "mlx/array.h"
#include "runtime/memory.h"

namespace mlx::core::vulkan {

// Whether arrays of files are made on GPU streams, unless the caller names
// another: the GPU is the default device and its arrays have two sides. Does
// not start the device.
bool files_go_to_gpu();

// Arrays that Load will make on a GPU stream.
void expect_weights(const std::vector<array>& arrays);

// Where Load makes `out`. Prints once for a model that does not fit how much of
// it stays in the host's memory.
Placement place_weight(const array& out);

} // namespace mlx::core::vulkan
