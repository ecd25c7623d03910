// Attention's backward pass without scores in memory.
#pragma once

#include "backend/stream_encoder.h"
#include "ops/attention/plan.h"

namespace mlx::core::vulkan {

// (batch, head, row, item), items side by side; mask (batch, head, query, key)
// or null; lse, from the forward pass, and delta = rowsum(y cotan) (batch,
// head, query), contiguous, in float32.
struct GradientOperands {
  const array& q;
  const array& k;
  const array& v;
  const array& cotan;
  const array* mask;
  const array& lse;
  const array& delta;
};

// What p says of them all; the plan's kernels take no other operands.
AttentionProblem gradient_problem(
    const array& q,
    const array& k,
    const array& v,
    const array& cotan,
    const array* mask,
    bool causal);

void run_gradients(
    StreamEncoder& enc,
    const GradientsPlan& plan,
    const AttentionProblem& p,
    const GradientOperands& in,
    float scale,
    array& dq,
    array& dk,
    array& dv);

} // namespace mlx::core::vulkan
