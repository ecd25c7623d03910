// Products of rows with sorted indices: each row takes a matrix that an index
// names, and equal indices stand together, as for the experts of a prompt.
#pragma once

#include "ops/gemm/gemm.h"

namespace mlx::core::vulkan {

// Where the tiles of rows begin, each `height` rows of one index at most:
// uint32 (rows + 2), kernels/gemm/sorted_tiles.h. `rhs`: row-contiguous uint32.
array sorted_tiles(StreamEncoder& enc, const array& rhs, uint32_t height);

// Writes `out`, which has memory, as run_gemm() does; or does nothing and
// returns false: of other types, layouts and devices than gemm_sorted.comp
// takes, and where each matrix has few rows. `call` has indices, equal ones of
// call.rhs side by side.
bool run_sorted_gemm(StreamEncoder& enc, const GemmCall& call, array& out);

} // namespace mlx::core::vulkan
