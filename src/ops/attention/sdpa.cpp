// fast::ScaledDotProductAttention: routing, masks and sinks.
#include <cmath>
#include <optional>

#include "mlx/backend/gpu/copy.h"
#include "mlx/fast_primitives.h"

#include "backend/stream_encoder.h"
#include "ops/attention/operands.h"
#include "ops/attention/params.h"
#include "ops/attention/plan.h"
#include "ops/layout.h"
#include "ops/path_stats.h"
#include "vk/caps.h"
#include "vk/config.h"

namespace mlx::core {

namespace vulkan {

AttentionDevice attention_device(StreamEncoder& enc, Type type) {
  const Caps& caps = enc.caps();
  return {
      caps.core_count,
      caps.min_subgroup_size ? caps.min_subgroup_size : caps.subgroup_size,
      caps.software(),
      caps.coopmat(type) && caps.matrix_subgroup() == 32,
      !config().disabled("splits"),
      caps.few_registers()};
}

int mask_kind(const array* mask) {
  return !mask ? 0 : mask->dtype() == bool_ ? 1 : 2;
}

MaskStrides mask_strides(const array* mask) {
  if (!mask) {
    return {};
  }
  const auto& m = *mask;
  return {m.strides(0), m.strides(1), m.strides(2), m.strides(3)};
}

bool vector_rows(const array& a, int64_t bytes) {
  int64_t item = a.itemsize();
  bool ok = a.offset() % bytes == 0 && a.shape(3) * item % bytes == 0;
  for (int d = 0; d < 3; ++d) {
    ok = ok && (a.shape(d) == 1 || a.strides(d) * item % bytes == 0);
  }
  return ok;
}

array unit_last(const array& a, StreamEncoder& enc) {
  if (a.strides(-1) == 1 || a.shape(-1) == 1) {
    return a;
  }
  array copy = contiguous_copy_gpu(a, enc.stream());
  enc.add_temporary(copy);
  return copy;
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
  bool causal;
  AttentionProblem shape;
};

std::vector<Operand> operands(const Attention& p) {
  std::vector<Operand> reads{p.q, p.k, p.v};
  if (p.mask) {
    reads.push_back(*p.mask);
  }
  return reads;
}

void count(const Attention& p, Type type, std::string path, const char* why) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  auto& s = p.shape;
  std::string shape = std::string(name_of(type)) + " batch=" + text(s.batches) +
      " heads=" + text(s.heads) + "/" + text(s.kv_heads) +
      " queries=" + text(s.queries) + " keys=" + text(s.keys) +
      " dim=" + text(s.dim) + "/" + text(s.value_dim) +
      (p.causal ? " causal" : "") +
      (!p.mask                      ? ""
           : mask_kind(p.mask) == 1 ? " bool mask"
                                    : " additive mask") +
      (p.sinks ? " sinks" : "");
  count_path("attention", shape, path, why);
}

std::vector<Operand> outputs(const Attention& p, const array& out) {
  std::vector<Operand> writes{out};
  if (p.lse) {
    writes.push_back(*p.lse);
  }
  return writes;
}

void decode(StreamEncoder& enc, const Attention& p, array& out) {
  DecodePlan plan = plan_decode(attention_device(enc, type_of(out)), p.shape);
  if (config().sdpa_stats) {
    auto splits = std::to_string(plan.splits);
    count(p, type_of(out), "decode, splits=" + splits, plan.why);
  }
  bool split = plan.splits > 1;
  bool sinks = p.sinks && !split; // else the merge adds them
  const Kernel& kernel = enc.kernel(
      "attention/decode",
      {{"T", type_of(out)},
       {"D", p.shape.dim},
       {"DV", p.shape.value_dim},
       {"TPK", plan.cluster},
       {"ROWS", plan.rows},
       {"WG", plan.workgroup},
       {"KU", plan.unroll},
       {"VEC", int(p.shape.aligned)},
       {"MASK", mask_kind(p.mask)},
       {"CAUSAL", int(p.causal && p.shape.queries > 1)},
       {"SINKS", int(sinks)},
       {"SPLIT", int(split)},
       {"LSE", int(p.lse && !split)}});
  DecodeParams params{
      p.shape.batches,
      p.shape.heads,
      p.shape.kv_heads,
      p.shape.queries,
      p.shape.keys,
      plan.row_groups,
      plan.splits,
      plan.split_keys,
      static_cast<int32_t>(p.q.strides(0)),
      static_cast<int32_t>(p.q.strides(1)),
      static_cast<int32_t>(p.q.strides(2)),
      p.scale * static_cast<float>(M_LOG2E),
      p.k.strides(0),
      p.k.strides(1),
      p.k.strides(2),
      p.v.strides(0),
      p.v.strides(1),
      p.v.strides(2)};

  int rows = p.shape.batches * p.shape.queries * p.shape.heads;
  array target = split ? enc.temporary(
                             {rows,
                              static_cast<int>(plan.splits),
                              static_cast<int>(p.shape.value_dim) + 2},
                             float32)
                       : out;
  std::vector<Operand> reads = operands(p);
  if (sinks) {
    reads.push_back(*p.sinks);
  }
  std::vector<Operand> writes{target};
  if (p.lse && !split) {
    writes.push_back(*p.lse);
  }
  Grid grid = linear(
      uint64_t(plan.splits) * plan.row_groups * p.shape.kv_heads *
      p.shape.batches);
  if (p.mask) {
    MaskedDecodeParams masked{params, mask_strides(p.mask)};
    enc.dispatch_bytes(kernel, reads, writes, &masked, sizeof(masked), grid);
  } else {
    enc.dispatch_bytes(kernel, reads, writes, &params, sizeof(params), grid);
  }
  if (!split) {
    return;
  }

  const Kernel& merge = enc.kernel(
      "attention/merge",
      {{"T", type_of(out)},
       {"DV", p.shape.value_dim},
       {"SINKS", int(p.sinks != nullptr)},
       {"LSE", int(p.lse != nullptr)}});
  MergeParams merge_params{
      static_cast<uint32_t>(rows), p.shape.heads, plan.splits, p.shape.queries};
  std::vector<Operand> merge_reads{target};
  if (p.sinks) {
    merge_reads.push_back(*p.sinks);
  }
  std::vector<Operand> merge_writes = outputs(p, out);
  enc.dispatch_bytes(
      merge,
      merge_reads,
      merge_writes,
      &merge_params,
      sizeof(merge_params),
      linear(rows));
}

const Kernel& prefill_kernel(
    StreamEncoder& enc,
    const Attention& p,
    const PrefillPlan& plan,
    Type type) {
  if (plan.coopmat) {
    return enc.coopmat_kernel(
        "attention/prefill_coopmat",
        type,
        {{"D", p.shape.dim},
         {"DV", p.shape.value_dim},
         {"MASK", mask_kind(p.mask)},
         {"CAUSAL", int(p.causal)},
         {"SINKS", int(p.sinks != nullptr)},
         {"LSE", int(p.lse != nullptr)}});
  }
  int64_t quad = 4 * p.q.itemsize();
  bool vec = vector_rows(p.q, quad) && vector_rows(p.k, quad) &&
      vector_rows(p.v, quad);
  return enc.kernel(
      "attention/prefill",
      {{"T", type},
       {"D", p.shape.dim},
       {"DV", p.shape.value_dim},
       {"BQ", plan.bq},
       {"BK", plan.bk},
       {"VEC", int(vec)},
       {"MASK", mask_kind(p.mask)},
       {"CAUSAL", int(p.causal)},
       {"SINKS", int(p.sinks != nullptr)},
       {"LSE", int(p.lse != nullptr)}});
}

void prefill(StreamEncoder& enc, const Attention& p, array& out) {
  Type type = type_of(out);
  PrefillPlan plan = plan_prefill(attention_device(enc, type), p.shape);
  if (config().sdpa_stats) {
    count(p, type, plan.coopmat ? "prefill_coopmat" : "prefill", plan.why);
  }
  const Kernel& kernel = prefill_kernel(enc, p, plan, type);
  PrefillParams params{
      p.shape.batches,
      p.shape.heads,
      p.shape.kv_heads,
      p.shape.queries,
      p.shape.keys,
      (p.shape.queries + plan.bq - 1) / plan.bq,
      p.scale * static_cast<float>(M_LOG2E),
      0,
      p.q.strides(0),
      p.q.strides(1),
      p.q.strides(2),
      p.k.strides(0),
      p.k.strides(1),
      p.k.strides(2),
      p.v.strides(0),
      p.v.strides(1),
      p.v.strides(2),
      mask_strides(p.mask)};
  std::vector<Operand> reads = operands(p);
  if (p.sinks) {
    reads.push_back(*p.sinks);
  }
  std::vector<Operand> writes = outputs(p, out);
  enc.dispatch_bytes(
      kernel,
      reads,
      writes,
      &params,
      sizeof(params),
      linear(uint64_t(params.tiles) * p.shape.heads * p.shape.batches));
}

// Memory for (batch, head, query, dim) laid out (batch, query, head, dim), so
// that the transpose and reshape which follow in every model are views.
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

bool fits_int32(const array& a) {
  for (int64_t s : a.strides()) {
    if (s > INT32_MAX || s < INT32_MIN) {
      return false;
    }
  }
  return true;
}

} // namespace
} // namespace vulkan

namespace fast {

bool ScaledDotProductAttention::use_fallback(
    const array& q,
    const array& k,
    const array& v,
    bool /* has_mask */,
    bool has_arr_mask,
    bool /* do_causal */,
    bool has_sinks,
    bool is_training,
    bool output_logsumexp,
    bool force_fused,
    Stream s) {
  const char* reason = nullptr;
  if (s.device != Device::gpu) {
    reason = "there is none for the CPU.";
  } else if (
      q.shape(-1) > static_cast<int>(vulkan::max_head_dim) ||
      v.shape(-1) > static_cast<int>(vulkan::max_head_dim) ||
      q.shape(-1) == 0 || v.shape(-1) == 0) {
    reason = "head dimensions must be from 1 to 512.";
  } else if (k.shape(2) == 0) {
    reason = "there are no keys.";
  }
  if (force_fused && reason) {
    throw std::invalid_argument(
        std::string("[scaled_dot_product_attention] force_fused=True but no "
                    "fused kernel is available: ") +
        reason);
  }
  if (reason || !is_training || force_fused) {
    return reason;
  }
  // The fused backward pass has no gradient for masks and sinks, which may be
  // trained; and without it the decomposition's intermediates are wanted.
  return !output_logsumexp || has_arr_mask || has_sinks || q.size() == 0;
}

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
  if (!vulkan::fits_int32(q)) {
    q = contiguous_copy_gpu(q, stream());
    enc.add_temporary(q);
  }
  std::optional<array> sinks;
  if (has_sinks_) {
    sinks = vulkan::unit_last(inputs.back(), enc);
  }
  bool has_mask = inputs.size() > 3 + static_cast<size_t>(has_sinks_);

  vulkan::Attention p{
      q,
      k,
      v,
      has_mask ? &inputs[3] : nullptr,
      sinks ? &*sinks : nullptr,
      lse,
      scale_,
      do_causal_,
      {static_cast<uint32_t>(q.shape(0)),
       static_cast<uint32_t>(q.shape(1)),
       static_cast<uint32_t>(k.shape(1)),
       static_cast<uint32_t>(q.shape(2)),
       static_cast<uint32_t>(k.shape(2)),
       static_cast<uint32_t>(q.shape(3)),
       static_cast<uint32_t>(v.shape(3)),
       static_cast<uint32_t>(q.itemsize()),
       vulkan::vector_rows(q, 16) && vulkan::vector_rows(k, 16) &&
           vulkan::vector_rows(v, 16)}};
  vulkan::allocate_output(out);
  auto device = vulkan::attention_device(enc, vulkan::type_of(out));
  if (vulkan::uses_decode(device, p.shape)) {
    vulkan::decode(enc, p, out);
  } else {
    vulkan::prefill(enc, p, out);
  }
}

} // namespace fast
} // namespace mlx::core
