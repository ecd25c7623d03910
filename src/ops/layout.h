// Donation and contiguity helpers of the primitives.
#pragma once

#include "backend/stream_encoder.h"
#include "mlx/array.h"
#include "mlx/backend/common/utils.h"
#include "ops/view.h"

namespace mlx::core::vulkan {

// Allocates `out`: the input's buffer if it is donatable, row-contiguous and of
// the same item size, otherwise a new one.
void donate_or_alloc(const array& in, array& out);

// Allocates `out` with the shape and layout of `in`, which has no gaps; reuses
// its buffer if it is donatable and item sizes match.
void alloc_like(const array& in, array& out, bool donatable);

// Allocates `out` and records a fill with zeros. The scalar operand is kept
// alive until the GPU has read it.
void fill_with_zeros(array& out, StreamEncoder& enc);

// New zeros, kept alive by `enc`.
array zeros(Shape shape, Dtype dtype, StreamEncoder& enc);

// `a` itself if row-contiguous, else a contiguous copy kept alive by `enc`.
array row_contiguous(const array& a, StreamEncoder& enc);

// True for weights in the host's memory that a product of `rows` rows had
// better copy first, because kernels read weights once for each few rows; false
// if the product uses few of the matrices.
bool worth_fetching(const array& w, uint64_t rows, StreamEncoder& enc);

// Memory of the device for a copy of so many bytes; none if it has no room.
std::optional<array> room_for_copy(uint64_t bytes, StreamEncoder& enc);

// Such weights, copied; else none.
std::optional<array>
fetched_weights(const array& w, uint64_t rows, StreamEncoder& enc);

// Mask kind of kernels: 0 none, 1 bool, 2 additive.
uint32_t mask_kind(const array* mask);

} // namespace mlx::core::vulkan
