#include "ops/attention/quantized.h"

#include "ops/attention/operands.h"
#include "ops/attention/plan.h"
#include "ops/tuned/tuned.h"
#include "runtime/rewrite_attention.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

using enum ScoresRecord::Operand; // as ProductStack has them

// Composition of a stack of products: sequences, KV heads, and the heads that
// share a KV head, the last axes of each operand in this order.
struct StackAxes {
  uint32_t batches = 1, kv_heads = 1, gqa = 1;

  uint32_t all() const {
    return batches * kv_heads * gqa;
  }
};

// Distance of an operand between products 0 and `step`.
int64_t stride(const ProductStack& s, int operand, uint32_t step) {
  int64_t at = 0;
  uint32_t rest = step;
  for (int d = s.ndim; d-- > 0;) {
    auto n = static_cast<uint32_t>(s.shape[d]);
    at += rest % n * s.strides[operand][d];
    rest /= n;
  }
  return rest ? 0 : at;
}

// Whether the stack's axes are whole axes of `h`, which strides can describe.
bool made_of(const ProductStack& s, const StackAxes& h) {
  uint32_t n = 1;
  for (int d = s.ndim; d-- > 0;) {
    n *= s.shape[d];
    if (n != 1 && n != h.gqa && n != h.gqa * h.kv_heads && n != h.all()) {
      return false;
    }
  }
  return n == h.all();
}

// Finds heads that share a KV head by strides of 0 in the values.
StackAxes axes_of(const array& weights, const ProductStack& s) {
  StackAxes h;
  int d = weights.ndim() - 3;
  auto shared = [&](int operand) { return stride(s, operand, 1) == 0; };
  if (d > 0 && weights.shape(d) > 1 && shared(W) && shared(Scales) &&
      shared(Side)) {
    h.gqa = weights.shape(d--);
  }
  h.kv_heads = weights.shape(d--);
  for (; d >= 0; --d) {
    h.batches *= weights.shape(d);
  }
  return h;
}

ItemStrides
item_strides(const ProductStack& s, int operand, const StackAxes& h) {
  return {
      h.batches > 1 ? stride(s, operand, h.gqa * h.kv_heads) : 0,
      h.kv_heads > 1 ? stride(s, operand, h.gqa) : 0};
}

// Strides of q; false if heads are not evenly spaced or strides exceed 32 bits.
bool query_strides(
    const StackedProductArgs& scores,
    const StackAxes& h,
    ShortStrides& out) {
  auto& s = scores.stack;
  int64_t batch = h.batches > 1 ? stride(s, X, h.gqa * h.kv_heads) : 0;
  int64_t kv_head = h.kv_heads > 1 ? stride(s, X, h.gqa) : 0;
  int64_t head = h.gqa > 1 ? stride(s, X, 1) : kv_head;
  if (h.kv_heads > 1 && kv_head != head * h.gqa) {
    return false;
  }
  for (int64_t n : {batch, head, scores.x_row}) {
    if (n > INT32_MAX || n < INT32_MIN) {
      return false;
    }
  }
  out = {
      static_cast<int>(batch),
      static_cast<int>(head),
      static_cast<int>(scores.x_row)};
  return true;
}

// Strides of a mask over scores (.., [KV heads,] heads, rows, keys).
bool mask_strides(
    const MaskRecord& m,
    const StackAxes& h,
    const AttentionProblem& p,
    MaskStrides& out) {
  const uint32_t extents[] = {h.batches, h.kv_heads, h.gqa, p.queries, p.keys};
  int64_t strides[5]{};
  int d = m.ndim;
  for (int i = 5; i-- > 0;) {
    // The axis of heads that share a KV head may be absent.
    if (i == 2 && m.ndim == 4) {
      if (h.gqa != 1) {
        return false;
      }
      continue;
    }
    if (d-- == 0 || static_cast<uint32_t>(m.shape[d]) != extents[i]) {
      return false;
    }
    strides[i] = extents[i] == 1 ? 0 : m.strides[d];
  }
  int64_t head = h.gqa > 1 ? strides[2] : strides[1];
  out = {strides[0], head, strides[3], strides[4]};
  return d == 0 &&
      (h.gqa == 1 || h.kv_heads == 1 || strides[1] == head * h.gqa);
}

bool aligned(uint64_t address, ItemStrides s, uint32_t bytes) {
  return (address | uint64_t(s.batch * 4) | uint64_t(s.head * 4)) % bytes == 0;
}

// An operand of a record of the open batch.
Binding bound(const Records& b, uint32_t record, uint32_t operand) {
  auto& a = b.of(record)[operand];
  uint64_t at = b.address(record, operand);
  return {nullptr, static_cast<int64_t>(at - a.base), a.begin, a.end, a.base};
}

// The records that become one dispatch.
struct Found {
  AttentionRecords records;
  AttentionProblem problem;
  QuantizedDecodeArgs args{};
};

bool is_other() {
  count_missed(rule_of("attention"), Miss::Form);
  return false;
}

// Fills in sizes, types and strides; false if the kernel does not support them.
bool describe(
    const Records& batch,
    const QuantOperands& values,
    const StackedProductArgs& v,
    const QuantShape& shape,
    Found& found) {
  auto& r = found.records;
  auto& s = batch.record<ScoresRecord>(r.scores);
  auto k = batch.args<ScoresRecord>(r.scores);
  auto& format = shape.common;
  StackAxes h = axes_of(values.x, v.stack);
  if (s.type != format.T || s.bits != format.BITS || s.group != format.GROUP ||
      k.M != v.M || k.N != v.K || k.stack.batch != v.stack.batch ||
      k.K > max_head_dim || v.N > max_head_dim || h.all() != v.stack.batch ||
      !made_of(k.stack, h) || !made_of(v.stack, h)) {
    return is_other();
  }
  if (h.gqa > 1) {
    for (int side : {W, Scales, Side}) {
      if (stride(k.stack, side, 1)) {
        return is_other();
      }
    }
  }
  auto& p = found.problem;
  p = {
      .type = format.T,
      .batches = h.batches,
      .heads = h.kv_heads * h.gqa,
      .kv_heads = h.kv_heads,
      .queries = v.M,
      .keys = v.K,
      .dim = k.K,
      .value_dim = v.N,
      .bits = static_cast<uint32_t>(format.BITS),
      .group = static_cast<uint32_t>(format.GROUP)};
  auto& a = found.args;
  a.k_codes_strides = item_strides(k.stack, W, h);
  a.k_scales_strides = item_strides(k.stack, Scales, h);
  a.k_biases_strides = item_strides(k.stack, Side, h);
  a.v_codes_strides = item_strides(v.stack, W, h);
  a.v_scales_strides = item_strides(v.stack, Scales, h);
  a.v_biases_strides = item_strides(v.stack, Side, h);
  // Both caches must be aligned to chunks of codes; rows are whole chunks.
  uint32_t bytes = code_chunk * p.bits / 8;
  if (!query_strides(k, h, a.q_strides) ||
      !aligned(batch.address(r.scores, W), a.k_codes_strides, bytes) ||
      !aligned(values.w.offset(), a.v_codes_strides, bytes)) {
    return is_other();
  }
  p.scaled = r.scale != none;
  if (r.mask != none) {
    auto& m = batch.record<MaskRecord>(r.mask);
    p.mask = m.adds ? 2 : 1;
    if (m.type != p.type || !mask_strides(m, h, p, a.mask_strides)) {
      return is_other();
    }
  }
  return true;
}

// Collects the kernel's inputs in its order; returns their number.
constexpr uint32_t most_reads = 10;
uint32_t read(
    const Records& batch,
    const AttentionRecords& r,
    const QuantOperands& values,
    Binding* reads) {
  uint32_t n = 0;
  reads[n++] = bound(batch, r.scores, X);
  if (r.scale != none) {
    // Reads the scale's input, whose layout is that of its output.
    auto made = batch.output_address(r.scale);
    auto x = batch.address(r.scores, X);
    reads[0] = bound(batch, r.scale, 0);
    reads[0].offset += static_cast<int64_t>(x - made);
    reads[n++] = bound(batch, r.scale, 1);
  }
  for (uint32_t i : {W, Scales, Side}) {
    reads[n++] = bound(batch, r.scores, i);
  }
  reads[n++] = bind(values.w);
  reads[n++] = bind(values.scales);
  reads[n++] = bind(*values.side);
  if (r.mask != none) {
    auto& mask = batch.record<MaskRecord>(r.mask);
    reads[n++] = bound(batch, r.mask, mask.mask);
    if (!mask.adds) {
      reads[n++] = bound(batch, r.mask, 2);
    }
  }
  return n;
}

void dispatch(
    StreamEncoder& enc,
    const QuantOperands& values,
    const DecodePlan& plan,
    Found& found,
    array& out) {
  auto& p = found.problem;
  auto& r = found.records;
  Binding reads[most_reads], writes[3];
  uint32_t n = read(records_of(*enc.raw().open_batch()), r, values, reads),
           m = 0;
  std::optional<array> parts;
  if (plan.kernel.PARTS) {
    parts = decode_parts(enc, p, plan);
    writes[m++] = bind(*parts);
    writes[m++] = bind(enc.counters(plan.groups(p)));
  }
  writes[m++] = bind(out);
  auto& a = found.args;
  Grid grid = set_decode(a, p, plan, 1);
  uint32_t members[4], joined = 0;
  for (uint32_t member : r.all()) {
    if (member != none) {
      members[joined++] = member;
    }
  }
  enc.raw().drop({members, joined});
  enc.dispatch_bound(
      plan.kernel, {reads, n}, {writes, m}, a, grid, attention_work(p));
  count_joined(rule_of("attention"), joined);
}

bool is_on() {
  static const bool on =
      !config().disabled("fuse") && !config().disabled("fuse_attention");
  return on;
}

} // namespace

bool may_be_scores(const QuantShape& s) {
  auto& f = s.common;
  return is_on() && s.transpose && f.BATCH == BATCH_STACK &&
      f.CODE == CODE_INTEGER && f.SIDE == SIDE_BIASES &&
      (f.BITS == 4 || f.BITS == 8) && s.m <= max_decode_queries;
}

bool attend_quantized(
    StreamEncoder& enc,
    const QuantOperands& values,
    const StackedProductArgs& args,
    const QuantShape& shape,
    array& out) {
  QuantShape as_scores = shape;
  as_scores.transpose = true;
  const Batch* open = enc.raw().open_batch();
  if (!open || !may_be_scores(as_scores)) {
    return false;
  }
  Binding weights = bind(values.x);
  if (!weights.buffer) {
    return false;
  }
  Records batch = records_of(*open);
  Found found{find_attention(
      batch, {weights.buffer->address(), weights.begin, weights.end, false})};
  if (!found.records.found() || !describe(batch, values, args, shape, found)) {
    return false;
  }
  auto& p = found.problem;
  DecodePlan plan = tuned_decode(enc.target(), p);
  if (!fits_registers(enc.target(), plan.kernel)) {
    return is_other();
  }
  if (config().debug_paths) {
    count_attention(
        p, "decode, splits=" + std::to_string(plan.splits), plan.why);
  }
  dispatch(enc, values, plan, found, out);
  return true;
}

} // namespace mlx::core::vulkan
