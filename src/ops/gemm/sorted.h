// Products of rows with sorted matrix indices, as in the experts of a prompt:
// each row uses the matrix of its index, and equal indices are adjacent.
#pragma once

#include "ops/gemm/gemm.h"

namespace mlx::core::vulkan {

// Tile boundaries, at most `height` rows of one index each: uint32 (rows + 2),
// kernels/gemm/sorted_tiles.h. `rhs` is row-contiguous uint32. Products of the
// same indices share the result.
array sorted_tiles(StreamEncoder& enc, const array& rhs, uint32_t height);

// Writes `out`, which must be allocated, as run_gemm() does. Returns false and
// does nothing for types, layouts and devices that gemm_sorted.comp does not
// support, and if each matrix has few rows. `call` has indices, with equal
// values of call.rhs adjacent.
bool run_sorted_gemm(StreamEncoder& enc, const GemmCall& call, array& out);

} // namespace mlx::core::vulkan
