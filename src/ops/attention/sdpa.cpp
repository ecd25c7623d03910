// fast::ScaledDotProductAttention: routing, masks and sinks.
#include <algorithm>
#include <optional>
#include <utility>

#include "mlx/fast_primitives.h"
#include "mlx/utils.h"

#include "backend/stream_encoder.h"
#include "kernels/attention/ranges.h"
#include "ops/attention/operands.h"
#include "ops/attention/plan.h"
#include "ops/attention/sdpa.h"
#include "ops/layout.h"
#include "ops/path_stats.h"
#include "ops/tuned/tuned.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {

AttentionProblem attention_problem(
    const array& q,
    const array& k,
    const array& v,
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
      .alignment =
          std::min({row_alignment(q), row_alignment(k), row_alignment(v)}),
      .mask = mask_kind(mask),
      .causal = causal};
}

MaskStrides mask_strides(const array* mask) {
  if (!mask) {
    return {};
  }
  const auto& m = *mask;
  return {m.strides(0), m.strides(1), m.strides(2), m.strides(3)};
}

HeadStrides head_strides(const array& a) {
  return {a.strides(0), a.strides(1), a.strides(2)};
}

array decode_parts(
    StreamEncoder& enc,
    const AttentionProblem& s,
    const DecodePlan& plan) {
  return enc.temporary(
      {static_cast<int>(plan.groups(s) * plan.kernel.ROWS),
       static_cast<int>(plan.splits),
       static_cast<int>(s.value_dim) + 2},
      float32);
}

uint32_t row_alignment(const array& a) {
  int64_t items = a.shape(3);
  for (int d = 0; d < 3; ++d) {
    items |= a.shape(d) == 1 ? 0 : a.strides(d);
  }
  int64_t bytes = items * static_cast<int64_t>(a.itemsize()) | a.offset() | 16;
  return bytes & -bytes;
}

array unit_last(const array& a, StreamEncoder& enc) {
  bool has = a.strides(-1) == 1 || a.shape(-1) == 1;
  return has ? a : row_contiguous(a, enc);
}

Work attention_work(const AttentionProblem& p) {
  double per_key = p.dim + p.value_dim, size = size_of(p.type);
  double item = p.bits ? p.bits / 8.0 + 2.0 * size / p.group : size;
  return {
      .flops = 2.0 * p.batches * p.heads * p.queries * p.keys * per_key,
      .bytes = p.batches * per_key *
          (item * p.kv_heads * p.keys + size * p.heads * p.queries)};
}

void count_attention(
    const AttentionProblem& s,
    const std::string& path,
    const char* why) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string shape = std::string(name_of(s.type)) +
      (s.bits ? " bits=" + text(s.bits) + " group=" + text(s.group) : "") +
      " batch=" + text(s.batches) + " heads=" + text(s.heads) + "/" +
      text(s.kv_heads) + " queries=" + text(s.queries) +
      " keys=" + text(s.keys) + " dim=" + text(s.dim) + "/" +
      text(s.value_dim) + (s.causal ? " causal" : "") +
      (s.mask == 0       ? ""
           : s.mask == 1 ? " bool mask"
                         : " additive mask") +
      (s.sinks ? " sinks" : "");
  count_path("attention", shape, path, why);
}

namespace {

struct Attention {
  const array& q;
  const array& k;
  const array& v;
  const array* mask;
  const array* sinks;
  array* lse;
  float scale;
  AttentionProblem shape;
};

FewOperands operands(const Attention& p, bool sinks) {
  FewOperands reads;
  for (auto* a : {&p.q, &p.k, &p.v, p.mask, sinks ? p.sinks : nullptr}) {
    if (a) {
      reads.add(*a);
    }
  }
  return reads;
}

FewOperands outputs(const Attention& p, const array& out, bool lse) {
  FewOperands writes{out};
  if (lse) {
    writes.add(*p.lse);
  }
  return writes;
}

// The stride of an axis of length 1 has no meaning.
int64_t stride(const array& a, int d) {
  return a.shape(d) > 1 ? a.strides(d) : 0;
}

bool has_short_strides(const array& a) {
  for (int d = 0; d < 3; ++d) {
    if (!std::in_range<int32_t>(stride(a, d))) {
      return false;
    }
  }
  return true;
}

ShortStrides short_strides(const array& a) {
  auto s = [&](int d) { return static_cast<int32_t>(stride(a, d)); };
  return {s(0), s(1), s(2)};
}

void decode(StreamEncoder& enc, const Attention& p, array& out) {
  auto& s = p.shape;
  DecodePlan plan = tuned_decode(enc.target(), s);
  if (config().debug_paths) {
    count_attention(
        p.shape, "decode, splits=" + std::to_string(plan.splits), plan.why);
  }
  auto& k = plan.kernel;
  FewOperands reads = operands(p, k.SINKS);
  FewOperands writes;
  std::optional<array> part;
  if (k.PARTS) {
    writes.add(part.emplace(decode_parts(enc, s, plan)));
    writes.add(enc.counters(plan.groups(s)));
  }
  writes.add(out);
  if (k.LSE) {
    writes.add(*p.lse);
  }
  MaskedDecodeArgs args{
      {.q_strides = short_strides(p.q),
       .k_strides = short_strides(p.k),
       .v_strides = short_strides(p.v)},
      mask_strides(p.mask)};
  Grid grid = set_decode(args, s, plan, p.scale);
  if (p.mask) {
    enc.dispatch(k, reads, writes, args, grid, attention_work(s));
  } else {
    const DecodeArgs& plain = args;
    enc.dispatch(k, reads, writes, plain, grid, attention_work(s));
  }
}

// Finds the ranges of q, k and v for matrices of float16.
array ranges(StreamEncoder& enc, const Attention& p) {
  auto& s = p.shape;
  uint32_t groups = s.batches * s.kv_heads * 3;
  array found = enc.scratch({int(groups), 2}, uint32);
  RangesArgs args{
      .heads = s.heads,
      .kv_heads = s.kv_heads,
      .queries = s.queries,
      .keys = s.keys,
      .q_strides = head_strides(p.q),
      .k_strides = head_strides(p.k),
      .v_strides = head_strides(p.v)};
  RangesVariant variant{s.type, s.dim, s.value_dim};
  enc.dispatch(variant, {p.q, p.k, p.v}, {found}, args, linear(groups));
  return found;
}

void prefill(StreamEncoder& enc, const Attention& p, array& out) {
  auto& s = p.shape;
  PrefillPlan plan = tuned_prefill(enc.target(), s);
  if (config().debug_paths) {
    auto name = [](const auto& v) { return std::string(v.file.substr(10)); };
    count_attention(p.shape, std::visit(name, plan.kernel), plan.why);
  }
  PrefillArgs args{
      .batches = s.batches,
      .heads = s.heads,
      .kv_heads = s.kv_heads,
      .queries = s.queries,
      .keys = s.keys,
      .scale = p.scale * static_cast<float>(M_LOG2E),
      .q_strides = head_strides(p.q),
      .k_strides = head_strides(p.k),
      .v_strides = head_strides(p.v),
      .mask_strides = mask_strides(p.mask)};
  FewOperands reads = operands(p, s.sinks);
  std::optional<array> found;
  if (plan.rest) {
    reads.add(found.emplace(ranges(enc, p)));
  }
  auto run = [&](const auto& variant, uint32_t bq) {
    args.tiles = ceil_div(s.queries, bq);
    enc.dispatch(
        variant,
        reads,
        outputs(p, out, s.lse),
        args,
        linear(uint64_t(args.tiles) * s.heads * s.batches),
        attention_work(s));
  };
  std::visit([&](const auto& v) { run(v, plan.bq); }, plan.kernel);
  if (plan.rest) {
    run(*plan.rest, plan.rest->BQ);
  }
}

// Allocates (batch, head, query, dim) with the layout (batch, query, head,
// dim), so that the transpose and reshape that follow in models are views.
void allocate_output(array& out) {
  int64_t h = out.shape(1), l = out.shape(2), d = out.shape(3);
  if (h == 1 || l == 1) {
    out.set_data(allocator::malloc(out.nbytes()));
    return;
  }
  array::Flags flags;
  flags.contiguous = true;
  flags.row_contiguous = false;
  flags.col_contiguous = false;
  out.set_data(
      allocator::malloc(out.nbytes()),
      out.size(),
      {h * l * d, d, h * d, 1},
      flags);
}

} // namespace

bool decomposes_attention(const AttentionCall& c) {
  const char* reason = nullptr;
  if (c.stream.device != mlx::core::Device::gpu) {
    reason = "there is none for the CPU.";
  } else if (
      c.q.shape(-1) > static_cast<int>(max_head_dim) ||
      c.v.shape(-1) > static_cast<int>(max_head_dim) || c.q.shape(-1) == 0 ||
      c.v.shape(-1) == 0) {
    reason = "head dimensions must be from 1 to 512.";
  } else if (c.k.shape(2) == 0) {
    reason = "there are no keys.";
  }
  if (c.force_fused && reason) {
    throw std::invalid_argument(
        std::string("[scaled_dot_product_attention] force_fused=True but no "
                    "fused kernel is available: ") +
        reason);
  }
  if (reason || !c.is_training || c.force_fused) {
    return reason;
  }
  // The fused backward pass has no gradients of masks and sinks, which may be
  // trained; without that pass, the decomposition's intermediates are needed.
  return !c.output_logsumexp || c.has_array_mask || c.has_sinks ||
      c.q.size() == 0;
}

} // namespace vulkan

namespace fast {

bool ScaledDotProductAttention::supports_bool_mask() {
  return true;
}

void ScaledDotProductAttention::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& out = outputs[0];
  array* lse = outputs.size() > 1 ? &outputs[1] : nullptr;
  if (lse) {
    lse->set_data(allocator::malloc(lse->nbytes()));
  }
  if (out.size() == 0) {
    out.set_data(allocator::malloc(0));
    return;
  }
  auto& enc = vulkan::encoder(stream());
  array q = vulkan::unit_last(inputs[0], enc);
  array k = vulkan::unit_last(inputs[1], enc);
  array v = vulkan::unit_last(inputs[2], enc);
  std::optional<array> sinks;
  if (has_sinks_) {
    sinks = vulkan::unit_last(inputs.back(), enc);
  }
  const array* mask = inputs.size() > 3 + static_cast<size_t>(has_sinks_)
      ? &inputs[3]
      : nullptr;

  auto shape = vulkan::attention_problem(q, k, v, mask, do_causal_);
  shape.sinks = has_sinks_;
  shape.lse = lse != nullptr;
  vulkan::Attention p{
      q, k, v, mask, sinks ? &*sinks : nullptr, lse, scale_, shape};
  vulkan::allocate_output(out);
  bool fits = vulkan::has_short_strides(q) && vulkan::has_short_strides(k) &&
      vulkan::has_short_strides(v);
  if (fits && vulkan::uses_decode(enc.target(), p.shape)) {
    vulkan::decode(enc, p, out);
  } else {
    vulkan::prefill(enc, p, out);
  }
}

} // namespace fast
} // namespace mlx::core
