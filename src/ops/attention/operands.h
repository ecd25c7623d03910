// Operand checks and temporaries of attention and its backward pass.
#pragma once

#include <cmath>
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

// Sets the members that the arguments of all decode kernels have; returns the
// grid. q is multiplied by `scale`.
template <typename Args>
Grid set_decode(
    Args& args,
    const AttentionProblem& p,
    const DecodePlan& plan,
    float scale) {
  args.groups = plan.groups(p);
  args.gqa = p.heads / p.kv_heads;
  args.kv_heads = p.kv_heads;
  args.row_groups = plan.row_groups;
  args.queries = p.queries;
  args.splits = plan.splits;
  args.keys = p.keys;
  args.split_keys = plan.split_keys;
  args.scale = scale * static_cast<float>(M_LOG2E);
  return linear(uint64_t(plan.splits) * args.groups);
}

// Counts keys and values once each: a decode step reads no more of the cache.
Work attention_work(const AttentionProblem& p);

// Counts a call for MLX_VK_DEBUG=paths.
void count_attention(
    const AttentionProblem& p,
    const std::string& path,
    const char* why);

} // namespace mlx::core::vulkan
