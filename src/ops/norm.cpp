#include <algorithm>

#include "mlx/fast_primitives.h"
#include "ops/layout.h"
#include "ops/reduce.h"
#include "ops/rows.h"

namespace mlx::core::fast {

using namespace vulkan;

namespace {

struct NormParams { // mirrors kernels/norm.comp
  RowParams rows;
  int64_t w_stride, b_stride;
  float eps, inverse_n;
};

struct NormVjpParams { // mirrors kernels/norm_vjp.comp
  uint64_t rows, rows_per_group;
  int64_t w_stride;
  uint32_t length;
  float eps, inverse_n;
  uint32_t pad;
};

// Weight and bias are vectors, or scalars that stand for "none".
bool given(const array& v) {
  return v.ndim() == 1;
}
int64_t stride_of(const array& v) {
  return given(v) ? v.strides()[0] : 0;
}
bool vector4(const array& v) {
  return !given(v) ||
      ((v.strides()[0] == 1 || v.size() == 1) &&
       v.offset() % (4 * v.itemsize()) == 0);
}

void norm(
    Stream s,
    bool layer,
    const array& in,
    const array& w,
    const array* b,
    float eps,
    array& out) {
  if (out.size() == 0) {
    out.set_data(allocator::malloc(0));
    return;
  }
  auto& enc = encoder(s);
  Rows rows = rows_of(in, enc, true);
  alloc_rows(rows, in, out);
  bool has_w = given(w), has_b = b && given(*b);
  bool vec = rows.vector4() && vector4(w) && (!b || vector4(*b));
  auto [lanes, chunks] = row_team(rows.count, rows.length);
  auto& k = enc.kernel(
      "norm",
      {{"T", type_of(out)},
       {"LAYER", int(layer)},
       {"WEIGHT", int(has_w)},
       {"BIAS", int(has_b)},
       {"LANES", lanes},
       {"CHUNKS", chunks},
       {"VEC", int(vec)}});
  NormParams params{
      RowParams(rows),
      stride_of(w),
      b ? stride_of(*b) : 0,
      eps,
      1.0f / rows.length};
  Grid grid = row_grid(rows.count, lanes);
  if (has_w && has_b) {
    enc.dispatch(k, {rows.x, w, *b}, {out}, params, grid);
  } else if (has_w) {
    enc.dispatch(k, {rows.x, w}, {out}, params, grid);
  } else if (has_b) {
    enc.dispatch(k, {rows.x, *b}, {out}, params, grid);
  } else {
    enc.dispatch(k, {rows.x}, {out}, params, grid);
  }
}

// Gradients for x, w and (layer norm) b from x, w and the cotangent g.
void norm_vjp(
    Stream s,
    bool layer,
    const array& x_in,
    const array& w,
    const array& g_in,
    float eps,
    array& gx,
    array& gw,
    array* gb) {
  auto& enc = encoder(s);
  bool has_w = given(w), has_b = gb && given(*gb);
  gw.set_data(allocator::malloc(gw.nbytes()));
  if (gb) {
    gb->set_data(allocator::malloc(gb->nbytes()));
  }
  uint32_t length = gx.shape(-1);
  uint64_t count = length ? gx.size() / length : 0;
  bool donate_x = x_in.is_donatable() && x_in.flags().row_contiguous;
  bool donate_g = g_in.is_donatable() && g_in.flags().row_contiguous;
  array x = row_contiguous(x_in, enc);
  array g = row_contiguous(g_in, enc);
  if (has_b) {
    // Before gx may take g's memory.
    array flat_g(
        {static_cast<int>(count), static_cast<int>(length)},
        g.dtype(),
        nullptr,
        {});
    flat_g.copy_shared_buffer(
        g, {int64_t(length), 1}, g.flags(), g.data_size());
    reduce_into(enc, flat_g, *gb, Reduce::Sum, {0});
  }
  array parts = gw;
  auto finish = [&] {
    if (has_w) {
      reduce_into(enc, parts, gw, Reduce::Sum, {0});
    }
  };
  if (gx.size() == 0) {
    gx.set_data(allocator::malloc(0));
    parts = array({0, static_cast<int>(length)}, float32, nullptr, {});
    parts.set_data(allocator::malloc(0));
    return finish();
  }
  if (donate_x) {
    gx.copy_shared_buffer(x);
  } else if (donate_g) {
    gx.copy_shared_buffer(g);
  } else {
    gx.set_data(allocator::malloc(gx.nbytes()));
  }

  int lanes = length <= 512 ? 128 : 256;
  int chunks = (length + 4 * lanes - 1) / (4 * lanes);
  chunks = chunks <= 6 ? chunks : 0;
  uint64_t per_group = chunks ? (count + 511) / 512 : 1;
  uint64_t groups = (count + per_group - 1) / per_group;
  if (has_w) {
    parts = enc.temporary(
        {static_cast<int>(groups), static_cast<int>(length)}, float32);
  }
  auto aligned = [](const array& a) {
    return a.offset() % (4 * a.itemsize()) == 0;
  };
  bool vec = length % 4 == 0 && aligned(x) && aligned(g) && vector4(w);
  auto& k = enc.kernel(
      "norm_vjp",
      {{"T", type_of(gx)},
       {"LAYER", int(layer)},
       {"WEIGHT", int(has_w)},
       {"LANES", lanes},
       {"CHUNKS", chunks},
       {"VEC", int(vec)}});
  NormVjpParams params{
      count, per_group, stride_of(w), length, eps, 1.0f / length, 0};
  if (has_w) {
    enc.dispatch(k, {x, g, w}, {gx, parts}, params, linear(groups));
  } else {
    enc.dispatch(k, {x, g}, {gx}, params, linear(groups));
  }
  finish();
}

} // namespace

bool RMSNorm::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

void RMSNorm::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm(stream(), false, inputs[0], inputs[1], nullptr, eps_, outputs[0]);
}

void RMSNormVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm_vjp(
      stream(),
      false,
      inputs[0],
      inputs[1],
      inputs[2],
      eps_,
      outputs[0],
      outputs[1],
      nullptr);
}

bool LayerNorm::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

void LayerNorm::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm(stream(), true, inputs[0], inputs[1], &inputs[2], eps_, outputs[0]);
}

void LayerNormVJP::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  norm_vjp(
      stream(),
      true,
      inputs[0],
      inputs[1],
      inputs[3],
      eps_,
      outputs[0],
      outputs[1],
      &outputs[2]);
}

} // namespace mlx::core::fast
