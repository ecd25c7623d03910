// Where the weights of files go on a card that has no room for all of them:
// decided before the first is read, from the bytes of all that are waiting.
// What a token reads least of stays in the host's memory first: embeddings of a
// model with an output layer of its own, then stacks of experts: all of them,
// with a cache of single experts on the card (ops/quant/expert_cache.h), if it
// has room for enough of them, and the host for all. Threads: any.
#pragma once

#include <string>
#include <unordered_map>

#include "mlx/array.h"
#include "runtime/memory.h"

namespace mlx::core::vulkan {

// Whether arrays of files are made on GPU streams, unless the caller names
// another: the GPU is the default device and its arrays have two sides. Does
// not start the device.
bool files_go_to_gpu();

// Arrays that Load will make on a GPU stream, by their names in a file.
void expect_weights(const std::unordered_map<std::string, array>& arrays);

struct WeightPlace {
  Placement placement = Placement::Device;
  uint32_t slots = 0; // of a stack of experts in place that is cached
};
// Where Load makes `out`. Prints once for a model that does not fit how much of
// it stays in the host's memory, and how fast it is read there.
WeightPlace place_weight(const array& out);

} // namespace mlx::core::vulkan
