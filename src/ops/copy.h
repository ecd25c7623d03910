// Strided copies beyond MLX's copy_gpu, for primitives that update in place.
#pragma once

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// Copies elements of `shape` from `in` to `out`. Strides and offsets count
// elements; dynamic offsets, from dynamic_offset(), are added on the GPU.
struct Move {
  Shape shape;
  Strides in_strides, out_strides;
  int64_t in_offset = 0, out_offset = 0;
  const array* dynamic_in = nullptr;
  const array* dynamic_out = nullptr;
};

// Offset of a slice of `of` at the starts last given to MLX's
// compute_dynamic_offset(): an int64; out of bounds NO_OFFSET
// (kernels/common/dynamic.h).
array dynamic_offset(
    StreamEncoder& enc,
    const array& indices,
    const array& of,
    const Shape& slice);

// Records one dispatch. With `reduce` (a function of common/combine.glsl; equal
// dtypes, no dynamic offsets) the destination is combined with the source.
// Hazard ranges are the bytes reached.
void copy_strided(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Move move,
    const char* reduce = nullptr);

} // namespace mlx::core::vulkan
