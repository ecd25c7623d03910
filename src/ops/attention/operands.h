// Operand checks and temporaries of attention and its backward pass.
#pragma once

#include <string>

#include "backend/stream_encoder.h"
#include "ops/attention/plan.h"

namespace mlx::core::vulkan {

// The problem without sinks and logsumexp. Operands are (batch, head, row,
// item) with contiguous items; the mask is (batch, head, query, key) or null.
AttentionProblem attention_problem(
    const array& q,
    const array& k,
    const array& v,
    const array* mask,
    bool causal);

MaskStrides mask_strides(const array* mask);
HeadStrides head_strides(const array& a);

// Largest alignment in bytes, up to 16, that heads, batches and rows share; a
// row's size is a multiple of it.
uint32_t row_alignment(const array& a);

// `a` itself if its last axis has unit stride, else a copy.
array unit_last(const array& a, StreamEncoder& enc);

// Float32 memory for the partial results of a decode kernel's splits; each row
// has two extra items, its maximum and its sum.
array decode_parts(
    StreamEncoder& enc,
    const AttentionProblem& p,
    const DecodePlan& plan);

// Joins the parts if the last workgroup does not: reads parts and optional
// sinks, writes y and optional logsumexp.
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
