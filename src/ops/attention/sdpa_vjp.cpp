// fast::ScaledDotProductAttentionVJP: dq, dk and dv from the output and its
// logsumexp. Weights and score gradients are recomputed, in registers if
// matrices allow it, else in bounded temporaries that our own matrix product
// multiplies.
#include <algorithm>
#include <optional>

#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "backend/stream_encoder.h"
#include "kernels/attention/vjp_delta.h"
#include "ops/attention/operands.h"
#include "ops/attention/plan.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {
namespace {

// The operands of attention_problem(). lse, from the forward pass, and delta =
// rowsum(y cotan) are (batch, head, query), contiguous, float32.
struct Vjp {
  StreamEncoder& enc;
  array q, k, v, cotan;
  const array* mask;
  array lse, delta;
  float scale;
  bool causal;
  int gqa;
  // Memory of the largest block, reused by each; without it scores stay in
  // registers.
  std::optional<array> p, ds;
};

// Runs the backward pass that keeps scores in registers.
void run_gradients(
    const Vjp& vjp,
    const GradientsPlan& plan,
    const AttentionProblem& p,
    array& dq,
    array& dk,
    array& dv) {
  auto& enc = vjp.enc;
  FewOperands reads{vjp.q, vjp.k, vjp.v};
  if (vjp.mask) {
    reads.add(*vjp.mask);
  }
  for (auto* a : {&vjp.cotan, &vjp.lse, &vjp.delta}) {
    reads.add(*a);
  }
  GradientsArgs args{
      .batches = p.batches,
      .heads = p.heads,
      .kv_heads = p.kv_heads,
      .queries = p.queries,
      .keys = p.keys,
      .scale = vjp.scale,
      .q_strides = head_strides(vjp.q),
      .k_strides = head_strides(vjp.k),
      .v_strides = head_strides(vjp.v),
      .cotan_strides = head_strides(vjp.cotan),
      .mask_strides = mask_strides(vjp.mask)};
  double product = 2.0 * p.batches * p.heads * p.queries * p.keys * p.dim;
  auto dispatch = [&](const auto& variant,
                      const FewOperands& writes,
                      uint32_t rows,
                      uint32_t heads,
                      int products) {
    args.tiles = ceil_div(rows, variant.rows());
    enc.dispatch(
        variant,
        reads,
        writes,
        args,
        linear(uint64_t(args.tiles) * heads * p.batches),
        {.flops = products * product});
  };
  dispatch(plan.keys, {dk, dv}, p.keys, p.kv_heads, 4);
  dispatch(plan.queries, {dq}, p.queries, p.heads, 3);
}

// A rectangle of scores: ranges of batches, KV heads, queries and keys.
struct Block {
  int batch, batches, kv_head, kv_heads;
  int head, heads; // of the queries
  int query, queries, key, keys;
};

// A range of batches, heads and rows of a (batch, head, row, dim) array.
array part(
    const array& a,
    int batch,
    int batches,
    int head,
    int heads,
    int row,
    int rows) {
  return view(
      a,
      {batches, heads, rows, a.shape(3)},
      a.strides(),
      batch * a.strides(0) + head * a.strides(1) + row * a.strides(2));
}

array query_part(const array& a, const Block& b) {
  return part(a, b.batch, b.batches, b.head, b.heads, b.query, b.queries);
}

array key_part(const array& a, const Block& b) {
  return part(a, b.batch, b.batches, b.kv_head, b.kv_heads, b.key, b.keys);
}

// `a` with the heads of a GQA group as rows of one matrix.
array grouped(const array& a, int kv_heads) {
  int gqa = a.shape(1) / kv_heads;
  return view(
      a,
      {a.shape(0), kv_heads, gqa * a.shape(2), a.shape(3)},
      {a.strides(0),
       gqa * a.strides(1),
       a.shape(2) == 1 ? a.strides(1) : a.strides(2),
       a.strides(3)});
}

array transposed(const array& a) {
  return view(
      a,
      {a.shape(0), a.shape(1), a.shape(3), a.shape(2)},
      {a.strides(0), a.strides(1), a.strides(3), a.strides(2)});
}

// `a`, copied unless the rows of a group's heads are evenly spaced.
array groupable(const array& a, int gqa, StreamEncoder& enc) {
  if (gqa == 1 || a.shape(2) == 1 ||
      a.strides(1) == a.shape(2) * a.strides(2)) {
    return unit_last(a, enc);
  }
  return row_contiguous(a, enc);
}

array row_dots(StreamEncoder& enc, const array& y, const array& cotan) {
  array delta = enc.temporary({y.shape(0), y.shape(1), y.shape(2), 1}, float32);
  enc.dispatch(
      DeltaVariant{
          type_of(y), std::min(row_alignment(y), row_alignment(cotan)) == 16},
      {y, cotan},
      {delta},
      DeltaArgs{
          .rows = static_cast<uint32_t>(delta.size()),
          .heads = static_cast<uint32_t>(y.shape(1)),
          .queries = static_cast<uint32_t>(y.shape(2)),
          .value_dim = static_cast<uint32_t>(y.shape(3)),
          .y_strides = head_strides(y),
          .cotan_strides = head_strides(cotan)},
      linear(delta.size(), 8));
  return delta;
}

struct Scores {
  array p, ds; // (batch, head, query, key)
};

ScoresArgs scores_args(const Vjp& vjp, const Block& b, const ScoresPlan& plan) {
  auto u = [](int64_t x) { return static_cast<uint32_t>(x); };
  return {
      .batches = u(b.batches),
      .heads = u(b.heads),
      .kv_heads = u(b.kv_heads),
      .queries = u(vjp.q.shape(2)),
      .keys = u(vjp.k.shape(2)),
      .dim = u(vjp.q.shape(3)),
      .value_dim = u(vjp.v.shape(3)),
      .pitch = vjp_pitch(b.keys),
      .query0 = u(b.query),
      .query_count = u(b.queries),
      .key0 = u(b.key),
      .key_count = u(b.keys),
      .query_tiles = ceil_div(b.queries, plan.bq),
      .key_tiles = ceil_div(b.keys, plan.bk),
      .scale = vjp.scale,
      .q_strides = head_strides(vjp.q),
      .k_strides = head_strides(vjp.k),
      .v_strides = head_strides(vjp.v),
      .cotan_strides = head_strides(vjp.cotan),
      .lse_strides = head_strides(vjp.lse),
      .mask_strides = mask_strides(vjp.mask)};
}

Scores scores(const Vjp& vjp, const Block& b) {
  auto& enc = vjp.enc;
  int64_t pitch = vjp_pitch(b.keys);
  Shape shape{b.batches, b.heads, b.queries, b.keys};
  Strides strides{b.heads * b.queries * pitch, b.queries * pitch, pitch, 1};
  Scores out{view(*vjp.p, shape, strides), view(*vjp.ds, shape, strides)};

  // Operands span all queries and keys, so that masks count from the first.
  Block reach = b;
  reach.query = reach.key = 0;
  reach.queries = vjp.q.shape(2);
  reach.keys = vjp.k.shape(2);
  array q = query_part(vjp.q, reach), cotan = query_part(vjp.cotan, reach);
  array k = key_part(vjp.k, reach), v = key_part(vjp.v, reach);
  array lse = query_part(vjp.lse, reach), delta = query_part(vjp.delta, reach);
  std::vector<Operand> reads{q, k, v};
  std::optional<array> mask;
  if (vjp.mask) {
    mask = query_part(*vjp.mask, reach);
    reads.push_back(*mask);
  }
  for (auto* a : {&cotan, &lse, &delta}) {
    reads.push_back(*a);
  }

  auto problem = attention_problem(q, k, v, vjp.mask, vjp.causal);
  problem.alignment = std::min(problem.alignment, row_alignment(cotan));
  ScoresPlan plan = plan_scores(enc.target(), problem);
  ScoresArgs args = scores_args(vjp, b, plan);
  std::visit(
      [&](const auto& variant) {
        enc.dispatch(
            variant,
            reads,
            {out.p, out.ds},
            args,
            linear(
                uint64_t(args.query_tiles) * args.key_tiles * b.heads *
                b.batches),
            {.flops = 2.0 * b.batches * b.heads * b.queries * b.keys *
                 (q.shape(3) + v.shape(3))});
      },
      plan.kernel);
  return out;
}

void product(const Vjp& vjp, const array& a, const array& b, array out) {
  run_gemm(vjp.enc, {a, b}, out);
}

void query_gradient(
    const Vjp& vjp,
    const Block& b,
    const Scores& s,
    const array& dq) {
  product(
      vjp,
      grouped(s.ds, b.kv_heads),
      key_part(vjp.k, b),
      grouped(query_part(dq, b), b.kv_heads));
}

void key_gradients(
    const Vjp& vjp,
    const Block& b,
    const Scores& s,
    const array& dk,
    const array& dv) {
  product(
      vjp,
      transposed(grouped(s.ds, b.kv_heads)),
      grouped(query_part(vjp.q, b), b.kv_heads),
      key_part(dk, b));
  product(
      vjp,
      transposed(grouped(s.p, b.kv_heads)),
      grouped(query_part(vjp.cotan, b), b.kv_heads),
      key_part(dv, b));
}

void differentiate(
    const Vjp& vjp,
    const VjpPlan& plan,
    const array& dq,
    const array& dk,
    const array& dv) {
  int batches = dq.shape(0), heads = dq.shape(1), kv_heads = dk.shape(1);
  int queries = dq.shape(2), keys = dk.shape(2);
  int step = plan.kv_heads, gqa = vjp.gqa;
  for (int n = 0; n < batches; n += plan.batches) {
    int count = std::min<int>(plan.batches, batches - n);
    for (int h = 0; h < kv_heads; h += step) {
      int some = std::min(step, kv_heads - h);
      Block b{n, count, h, some, h * gqa, some * gqa, 0, queries, 0, keys};
      if (plan.blocked) {
        for (; b.key < keys; b.key += plan.keys) {
          b.keys = std::min<int>(plan.keys, keys - b.key);
          key_gradients(vjp, b, scores(vjp, b), dk, dv);
        }
        continue;
      }
      Scores s = scores(vjp, b);
      query_gradient(vjp, b, s, dq);
      key_gradients(vjp, b, s, dk, dv);
    }
    for (int h = 0; plan.blocked && h < heads; ++h) {
      Block b{n, 1, h / gqa, 1, h, 1, 0, queries, 0, keys};
      for (; b.query < queries; b.query += plan.queries) {
        b.queries = std::min<int>(plan.queries, queries - b.query);
        query_gradient(vjp, b, scores(vjp, b), dq);
      }
    }
  }
}

// Most scores in a block. MLX_SDPA_VJP_BLOCK, MLX's variable, is its edge.
uint64_t most_scores(int item) {
  constexpr int64_t bytes = 128 << 20;
  int64_t edge = env::get_var("MLX_SDPA_VJP_BLOCK", 0);
  return edge > 0 ? edge * edge : bytes / item;
}

} // namespace
} // namespace vulkan

namespace fast {

bool ScaledDotProductAttentionVJP::use_fallback(const array& q, Stream s) {
  Dtype t = q.dtype();
  return s.device != Device::gpu ||
      env::get_var("MLX_SDPA_VJP_FALLBACK", 0) != 0 ||
      !(t == float32 || t == float16 || t == bfloat16);
}

void ScaledDotProductAttentionVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = vulkan::encoder(stream());
  if (inputs[0].size() == 0) {
    for (auto& out : outputs) {
      vulkan::fill_with_zeros(out, enc);
    }
    return;
  }
  for (auto& out : outputs) {
    out.set_data(allocator::malloc(out.nbytes()));
  }
  // Inputs: q, k, v, optional mask and sinks, output, lse, cotangent.
  size_t n = inputs.size();
  bool has_mask = n > 6 + static_cast<size_t>(has_sinks_);
  int gqa = inputs[0].shape(1) / inputs[1].shape(1);
  const array* mask = has_mask ? &inputs[3] : nullptr;
  array y = vulkan::unit_last(inputs[n - 3], enc);
  array lse = vulkan::row_contiguous(inputs[n - 2], enc);
  array cotan = vulkan::unit_last(inputs[n - 1], enc);
  array q = vulkan::unit_last(inputs[0], enc);
  array k = vulkan::unit_last(inputs[1], enc);
  array v = vulkan::unit_last(inputs[2], enc);
  array delta = vulkan::row_dots(enc, y, cotan);
  auto shape = vulkan::attention_problem(q, k, v, mask, do_causal_);
  shape.alignment = std::min(shape.alignment, vulkan::row_alignment(cotan));
  auto gradients = vulkan::plan_gradients(enc.target(), shape);
  if (vulkan::config().debug_paths) {
    vulkan::count_attention(
        shape,
        gradients ? "backward, in registers" : "backward, through memory",
        gradients ? "" : vulkan::no_gradients(enc.target(), shape));
  }
  vulkan::Vjp vjp{
      enc, q, k, v, cotan, mask, lse, delta, scale_, do_causal_, gqa, {}, {}};
  if (gradients) {
    vulkan::run_gradients(
        vjp, *gradients, shape, outputs[0], outputs[1], outputs[2]);
    return;
  }
  vulkan::VjpPlan plan =
      vulkan::plan_vjp(shape, vulkan::most_scores(cotan.itemsize()));
  int room = static_cast<int>(vulkan::vjp_room(shape, plan));
  vjp.q = vulkan::groupable(q, gqa, enc);
  vjp.cotan = vulkan::groupable(cotan, gqa, enc);
  vjp.p = enc.temporary({room}, cotan.dtype());
  vjp.ds = enc.temporary({room}, cotan.dtype());
  vulkan::differentiate(vjp, plan, outputs[0], outputs[1], outputs[2]);
}

} // namespace fast
} // namespace mlx::core
