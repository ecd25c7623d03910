// Layout helpers shared by the primitives: donation and contiguity.
#pragma once

#include <vector>

#include "backend/stream_encoder.h"
#include "mlx/array.h"
#include "mlx/backend/common/utils.h"
#include "ops/view.h"

namespace mlx::core::vulkan {

// Gives `out` memory: the input's own buffer when it is donatable and
// row-contiguous with the same item size, else a fresh one.
void donate_or_alloc(const array& in, array& out);

// Gives `out`, of `in`'s shape, memory that is laid out as `in`'s, which has no
// holes: its own where it may be donated and items have the same size.
void alloc_like(const array& in, array& out, bool donatable);

// Gives `out` memory, and zeros from the GPU. The scalar they come from lives
// until the GPU has read it.
void fill_with_zeros(array& out, StreamEncoder& enc);

// `a` itself if row-contiguous, else a contiguous copy kept alive by `enc`.
array row_contiguous(const array& a, StreamEncoder& enc);

// What kernels call a mask: 0 none, 1 bool, 2 numbers.
uint32_t mask_kind(const array* mask);

} // namespace mlx::core::vulkan
