// Attention's backward pass that keeps scores in registers.
#pragma once

#include "backend/stream_encoder.h"
#include "ops/attention/plan.h"

namespace mlx::core::vulkan {

// Operands are (batch, head, row, item) with contiguous items; the mask is
// (batch, head, query, key) or null. lse, from the forward pass, and delta =
// rowsum(y cotan) are (batch, head, query), contiguous, float32.
struct GradientOperands {
  const array& q;
  const array& k;
  const array& v;
  const array& cotan;
  const array* mask;
  const array& lse;
  const array& delta;
};

// The problem that the plan's kernels solve for these operands.
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
