#include <algorithm>
#include <cmath>

#include "kernels/rope.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/fast_primitives.h"
#include "ops/layout.h"
#include "ops/records.h"
#include "ops/view.h"

namespace mlx::core::fast {

using namespace vulkan;

namespace {

// Stride of the axes between the first and the last two; false if they are not
// evenly spaced. No extent may be zero.
bool middle_stride(const array& x, int64_t& stride) {
  if (x.ndim() == 4) {
    stride = x.shape(1) == 1 ? 1 : x.strides(1);
    return true;
  }
  auto [shape, strides] = collapsed(
      Shape(x.shape().begin() + 1, x.shape().end() - 2),
      Strides(x.strides().begin() + 1, x.strides().end() - 2));
  stride = strides[0];
  return shape.size() == 1;
}

// None if their items have gaps.
Heads heads_of(const RopeArgs& p, size_t item_size) {
  int64_t row = p.D, head = row * p.L;
  const HeadAxis axes[]{
      {p.B, p.b_stride, head * p.N},
      {p.N, p.n_stride, head},
      {p.L, p.t_stride, row}};
  return p.d_stride == 1 ? vulkan::heads_of(row, axes, item_size) : Heads{};
}

} // namespace

bool RoPE::use_fallback(Stream s) {
  return s.device == mlx::core::Device::cpu;
}

void RoPE::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  const array& in = inputs[0];
  const array& offset = inputs[1];
  array& out = outputs[0];
  auto& enc = encoder(stream());
  bool in_place = in.flags().row_contiguous && in.is_donatable();
  if (in_place) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }

  array x = in;
  RopeArgs p{};
  if (!middle_stride(x, p.n_stride)) {
    x = contiguous_copy_gpu(in, enc.stream());
    enc.add_temporary(x);
    middle_stride(x, p.n_stride);
  }
  int ndim = x.ndim();
  p.b_stride = x.strides()[0];
  p.t_stride = x.strides()[ndim - 2];
  p.d_stride = x.strides()[ndim - 1];
  p.B = x.shape(0);
  p.L = x.shape(-2);
  p.D = x.shape(-1);
  p.N = x.size() / (uint64_t(p.B) * p.L * p.D);
  p.half_dims = dims_ / 2;
  // A single offset applies to every sequence, whatever its stride.
  p.offset_stride = offset.size() > 1 ? offset.strides()[0] : 0;
  bool freqs = inputs.size() == 3;
  p.freqs_stride = freqs ? inputs[2].strides()[0] : 0;
  p.scale = scale_;
  double log2_base = std::log2(static_cast<double>(base_));
  p.log2_base = static_cast<float>(log2_base);
  p.log2_base_low = static_cast<float>(log2_base - p.log2_base);

  bool vec = p.d_stride == 1 && p.half_dims % 4 == 0 && p.D % 4 == 0 &&
      by_fours(x, {p.b_stride, p.n_stride, p.t_stride});
  uint32_t pairs = vec ? 4 : 1;
  // In place, items beyond the rotated ones need no copy.
  uint32_t tail = in_place ? 0 : p.D - dims_;
  p.columns = p.half_dims / pairs + tail / pairs;
  // With enough work, an invocation rotates several heads by the same angles.
  uint64_t invocations = uint64_t(p.columns) * p.L * p.N * p.B;
  p.heads = invocations >= (1 << 18) ? std::min(p.N, 8u)
      : invocations >= (1 << 16)     ? std::min(p.N, 4u)
                                     : 1;
  invocations = uint64_t(p.columns) * p.L * p.B * ceil_div(p.N, p.heads);

  auto [low, high] = reach(x.shape(), x.strides());
  RopeVariant v{
      .T = type_of(out),
      .TRADITIONAL = traditional_,
      .FREQS = freqs,
      .VEC = vec,
      .FORWARD = forward_,
      .LARGE = beyond_32_bits(std::max(high, -low), x.itemsize()) ||
          needs_large_index(out)};
  Descriptor record;
  if (forward_ && !v.LARGE) {
    record = RopeRecord{v.T, traditional_, freqs, heads_of(p, x.itemsize())};
  }
  FewOperands reads{x, offset};
  if (freqs) {
    reads.add(inputs[2]);
  }
  enc.dispatch(v, reads, {out}, p, linear(invocations, 128), {}, record);
}

} // namespace mlx::core::fast
