// Radix sort of long rows, for sort.cpp.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"

namespace mlx::core::vulkan {

// Sorts rows along the last axis of `in` into `out`, which must be allocated;
// with `arg`, positions (uint32). Returns false, without recording, if a merge
// sort is used: short rows, 64-bit keys, no fixed subgroup size.
bool radix_sort(StreamEncoder& enc, const array& in, array& out, bool arg);

} // namespace mlx::core::vulkan
