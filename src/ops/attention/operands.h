// What attention and its backward pass ask of their operands.
#pragma once

#include <string>

#include "backend/stream_encoder.h"
#include "ops/attention/plan.h"

namespace mlx::core::vulkan {

MaskStrides mask_strides(const array* mask);
HeadStrides head_strides(const array& a);

// The bytes, up to 16, of which heads, batches and rows all start at
// multiples; rows hold a whole number of such pieces.
uint32_t row_alignment(const array& a);

// `a` itself if its last axis has unit stride, else a copy.
array unit_last(const array& a, StreamEncoder& enc);

// Where the splits of a decode kernel leave their parts: a row's has two items
// more, its maximum and its sum. f32.
array decode_parts(
    StreamEncoder& enc,
    const AttentionProblem& p,
    const DecodePlan& plan);

// Joins them where the last workgroup does not: parts and perhaps sinks become
// y and perhaps its logsumexp.
void merge_parts(
    StreamEncoder& enc,
    const AttentionProblem& p,
    const DecodePlan& plan,
    const FewOperands& reads,
    const FewOperands& writes);

// Counts a call for MLX_VK_DEBUG=paths.
void count_attention(
    const AttentionProblem& p,
    const std::string& path,
    const char* why);

} // namespace mlx::core::vulkan
