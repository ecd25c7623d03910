// What attention and its backward pass ask of their operands.
#pragma once

#include "backend/stream_encoder.h"
#include "ops/attention/params.h"
#include "ops/attention/plan.h"

namespace mlx::core::vulkan {

AttentionDevice attention_device(StreamEncoder& enc, Type type);

// MASK of the kernels: 0 none, 1 bool, 2 additive.
int mask_kind(const array* mask);
MaskStrides mask_strides(const array* mask);

// Heads, batches and rows all start at multiples of `bytes`, and rows hold a
// whole number of such pieces.
bool vector_rows(const array& a, int64_t bytes);

// `a` itself if its last axis has unit stride, else a copy.
array unit_last(const array& a, StreamEncoder& enc);

} // namespace mlx::core::vulkan
