// Strided moves beyond MLX's copy_gpu: for primitives that update in place.
#pragma once

#include "backend/stream_encoder.h"

namespace mlx::core::vulkan {

// Elements `shape` of `in` to `out`. Strides and offsets are in elements; the
// dynamic ones are dynamic_offset()s, read on the GPU and added.
struct Move {
  Shape shape;
  Strides in_strides, out_strides;
  int64_t in_offset = 0, out_offset = 0;
  const array* dynamic_in = nullptr;
  const array* dynamic_out = nullptr;
};

// The offset of a slice of `of` at the starts that MLX's
// compute_dynamic_offset() was given last: an int64, or that of no place
// (kernels/common/dynamic.h) where the slice would not be inside.
array dynamic_offset(
    StreamEncoder& enc,
    const array& indices,
    const array& of,
    const Shape& slice);

// One dispatch. With `reduce` (a function of common/combine.glsl; equal dtypes,
// no dynamic offsets) the destination is combined with the source. The hazard
// ranges are the bytes that the move reaches.
void copy_strided(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Move move,
    const char* reduce = nullptr);

} // namespace mlx::core::vulkan
