// Radix sort of long rows, for sort.cpp.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Sorts the rows of the last axis of `in` into `out`, which has memory; with
// `arg`, positions (uint32). False, and nothing is recorded, where merging is
// the way: short rows, keys of 64 bits, no subgroups of a fixed size.
bool radix_sort(StreamEncoder& enc, const array& in, array& out, bool arg);

} // namespace mlx::core::vulkan
