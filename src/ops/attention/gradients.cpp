#include "ops/attention/gradients.h"

#include <algorithm>

#include "ops/attention/operands.h"
#include "ops/layout.h"

namespace mlx::core::vulkan {

AttentionProblem gradient_problem(
    const array& q,
    const array& k,
    const array& v,
    const array& cotan,
    const array* mask,
    bool causal) {
  auto u = [](int x) { return static_cast<uint32_t>(x); };
  return {
      .type = type_of(q),
      .batches = u(q.shape(0)),
      .heads = u(q.shape(1)),
      .kv_heads = u(k.shape(1)),
      .queries = u(q.shape(2)),
      .keys = u(k.shape(2)),
      .dim = u(q.shape(3)),
      .value_dim = u(v.shape(3)),
      .alignment = std::min(
          {row_alignment(q),
           row_alignment(k),
           row_alignment(v),
           row_alignment(cotan)}),
      .mask = mask_kind(mask),
      .causal = causal};
}

void run_gradients(
    StreamEncoder& enc,
    const GradientsPlan& plan,
    const AttentionProblem& p,
    const GradientOperands& in,
    float scale,
    array& dq,
    array& dk,
    array& dv) {
  FewOperands reads{in.q, in.k, in.v};
  if (in.mask) {
    reads.add(*in.mask);
  }
  for (auto* a : {&in.cotan, &in.lse, &in.delta}) {
    reads.add(*a);
  }
  GradientsArgs args{
      .batches = p.batches,
      .heads = p.heads,
      .kv_heads = p.kv_heads,
      .queries = p.queries,
      .keys = p.keys,
      .scale = scale,
      .q_strides = head_strides(in.q),
      .k_strides = head_strides(in.k),
      .v_strides = head_strides(in.v),
      .cotan_strides = head_strides(in.cotan),
      .mask_strides = mask_strides(in.mask)};
  double product = 2.0 * p.batches * p.heads * p.queries * p.keys * p.dim;
  auto dispatch = [&](const auto& variant,
                      const FewOperands& writes,
                      uint32_t rows,
                      uint32_t heads,
                      int products) {
    args.tiles = (rows + variant.rows() - 1) / variant.rows();
    enc.dispatch(
        enc.kernel(variant),
        reads,
        writes,
        args,
        linear(uint64_t(args.tiles) * heads * p.batches),
        {.flops = products * product});
  };
  std::visit(
      [&](const auto& v) {
        dispatch(v, {dk, dv}, p.keys, p.kv_heads, 4);
      },
      plan.keys);
  std::visit(
      [&](const auto& v) { dispatch(v, {dq}, p.queries, p.heads, 3); },
      plan.queries);
}

} // namespace mlx::core::vulkan
