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

// Gives `out` memory, and zeros from the GPU. The scalar they come from lives
// until the GPU has read it.
void fill_with_zeros(array& out, StreamEncoder& enc);

// `a` itself if row-contiguous, else a contiguous copy kept alive by `enc`.
array row_contiguous(const array& a, StreamEncoder& enc);

} // namespace mlx::core::vulkan
