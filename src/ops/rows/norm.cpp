#include "mlx/fast_primitives.h"
#include "ops/layout.h"
#include "ops/records.h"
#include "ops/reduce/reduce.h"
#include "ops/rows/rows.h"
#include "ops/tuned/tuned.h"

namespace mlx::core::fast {

using namespace vulkan;

namespace {

// Whether a weight or bias is given: a vector. A scalar stands for none.
bool given(const array& v) {
  return v.ndim() == 1;
}
int64_t stride_of(const array& v) {
  return given(v) ? v.strides()[0] : 0;
}
bool vector4(const array& v) {
  return !given(v) || ((v.strides()[0] == 1 || v.size() == 1) && by_fours(v));
}

// `inputs`: x, w and, for layer norm, b.
void norm(
    Stream s,
    bool layer,
    const std::vector<array>& inputs,
    float eps,
    array& out) {
  const array& in = inputs[0];
  const array& w = inputs[1];
  const array& b = inputs[layer ? 2 : 1];
  auto& enc = encoder(s);
  Rows rows = rows_of(in, enc, true);
  alloc_rows(rows, in, out);
  bool has_w = given(w), has_b = layer && given(b);
  bool vec = rows.vector4() && vector4(w) && vector4(b);
  NormProblem p{type_of(out), rows.args.n, layer, has_w, has_b, vec};
  NormVariant v = tuned_plan(enc.target(), p);
  NormArgs args{
      .rows = rows.args,
      .w_stride = stride_of(w),
      .b_stride = has_b ? stride_of(b) : 0,
      .eps = eps,
      .inverse_n = 1.0f / rows.args.n};
  Descriptor descriptor;
  if (!layer) {
    auto& x = rows.x;
    descriptor = NormRecord{
        v.T,
        has_w,
        v.VEC,
        v.LANES,
        heads_of(x.shape(), x.strides(), out.strides(), out.itemsize())};
  }
  const Operand reads[] = {rows.x, has_w ? w : b, b};
  enc.dispatch(
      v,
      std::span(reads, 1 + has_w + has_b),
      {out},
      args,
      row_grid(rows.args.count, v.LANES),
      {},
      descriptor);
}

// Sums all rows of `g` into `gb`.
void bias_gradient(StreamEncoder& enc, const array& g, int length, array& gb) {
  int count = static_cast<int>(g.size() / std::max(length, 1));
  array rows = view(g, {count, length}, {length, 1});
  reduce_into(enc, rows, gb, Reduce::Sum, {0});
}

// Writes gx, and to `parts` each workgroup's sum of the weight's gradient.
void norm_vjp_rows(
    StreamEncoder& enc,
    bool layer,
    const array& x,
    const array& w,
    const array& g,
    float eps,
    const NormVjpPlan& plan,
    array& gx,
    const array& parts) {
  uint32_t n = gx.shape(-1);
  bool has_w = given(w);
  NormVjpVariant variant{
      .T = type_of(gx),
      .LAYER = layer,
      .WEIGHT = has_w,
      .LANES = plan.team.lanes,
      .CHUNKS = plan.team.chunks,
      .VEC = n % 4 == 0 && by_fours(x) && by_fours(g) && vector4(w)};
  NormVjpArgs args{
      .rows = gx.size() / n,
      .rows_per_group = plan.rows,
      .w_stride = stride_of(w),
      .n = n,
      .eps = eps,
      .inverse_n = 1.0f / n};
  const Operand reads[] = {x, g, w};
  const Operand writes[] = {gx, parts};
  enc.dispatch(
      variant,
      std::span(reads, 2 + has_w),
      std::span(writes, 1 + has_w),
      args,
      linear(plan.groups));
}

// Gradients of x, w and (layer norm) b from these and the cotangent.
void norm_vjp(
    Stream s,
    bool layer,
    const std::vector<array>& inputs,
    float eps,
    std::vector<array>& outputs) {
  auto& enc = encoder(s);
  const array& x_in = inputs[0];
  const array& w = inputs[1];
  const array& g_in = inputs.back();
  array& gx = outputs[0];
  array& gw = outputs[1];
  gw.set_data(allocator::malloc(gw.nbytes()));
  bool donate_x = x_in.is_donatable() && x_in.flags().row_contiguous;
  bool donate_g = g_in.is_donatable() && g_in.flags().row_contiguous;
  array x = row_contiguous(x_in, enc);
  array g = row_contiguous(g_in, enc);
  int length = gx.shape(-1);
  if (layer) {
    array& gb = outputs[2];
    gb.set_data(allocator::malloc(gb.nbytes()));
    if (given(gb)) { // before gx may take g's memory
      bias_gradient(enc, g, length, gb);
    }
  }
  if (donate_x) {
    gx.copy_shared_buffer(x);
  } else if (donate_g) {
    gx.copy_shared_buffer(g);
  } else {
    gx.set_data(allocator::malloc(gx.nbytes()));
  }
  NormVjpPlan plan{};
  if (gx.size() > 0) {
    plan = plan_norm_vjp(gx.size() / length, length);
  }
  array parts = given(w)
      ? enc.temporary({static_cast<int>(plan.groups), length}, float32)
      : gw;
  if (gx.size() > 0) {
    norm_vjp_rows(enc, layer, x, w, g, eps, plan, gx, parts);
  }
  if (given(w)) {
    reduce_into(enc, parts, gw, Reduce::Sum, {0});
  }
}

} // namespace

bool RMSNorm::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

void RMSNorm::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm(stream(), false, inputs, eps_, outputs[0]);
}

void RMSNormVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm_vjp(stream(), false, inputs, eps_, outputs);
}

bool LayerNorm::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

void LayerNorm::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm(stream(), true, inputs, eps_, outputs[0]);
}

void LayerNormVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm_vjp(stream(), true, inputs, eps_, outputs);
}

} // namespace mlx::core::fast
