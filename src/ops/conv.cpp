#include <algorithm>
#include <vector>

#include "mlx/primitives.h"

#include "ops/gemm/gemm.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

struct ConvParams { // mirrors kernels/conv.comp; axes are d, h, w
  uint64_t items, first;
  int64_t x_n, x_c, w_o, w_c;
  int64_t x_s[3], w_s[3];
  int32_t x_size[3], w_size[3], y_size[3];
  int32_t stride[3], pad[3], w_dilation[3], x_dilation[3];
  uint32_t outputs, group_outputs, channels, flip;
};

enum Mode { Direct, Depthwise, Unfold };

// The kernel moves four channels at a time.
bool by_fours(const array& a, uint32_t channels) {
  bool fits = a.strides(-1) == 1 && channels % 4 == 0 &&
      a.offset() % (4 * a.itemsize()) == 0;
  for (int d = 0; d < a.ndim() - 1; ++d) {
    fits = fits && (a.shape(d) == 1 || a.strides(d) % 4 == 0);
  }
  return fits;
}

// Rows [first, first + shape[0]) of a row-contiguous array, as a matrix.
array matrix(const array& a, Shape shape, int64_t first = 0) {
  array m(shape, a.dtype(), nullptr, {});
  auto flags = a.flags();
  flags.row_contiguous = flags.contiguous = true;
  flags.col_contiguous = m.size() <= 1 || shape[0] == 1 || shape[1] == 1;
  m.copy_shared_buffer(a, {shape[1], 1}, flags, m.size(), first * shape[1]);
  return m;
}

array transposed(const array& m) {
  array t({m.shape(1), m.shape(0)}, m.dtype(), nullptr, {});
  auto flags = m.flags();
  flags.row_contiguous = m.flags().col_contiguous;
  flags.col_contiguous = true;
  t.copy_shared_buffer(m, {1, m.strides(0)}, flags, m.data_size());
  return t;
}

} // namespace

void Convolution::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  array x = inputs[0];
  array w = inputs[1];
  // An axis of one place is none, so that conv2d of a line is conv1d to the
  // bit.
  std::vector<int> real_axes;
  for (int a = 0; a < int(out.ndim()) - 2; ++a) {
    if (x.shape(a + 1) != 1 || w.shape(a + 1) != 1 || out.shape(a + 1) != 1 ||
        padding_lo_[a] != 0) {
      real_axes.push_back(a);
    }
  }
  int axes = std::max<int>(real_axes.size(), 1);
  auto& enc = encoder(stream());
  Type type = type_of(out);

  ConvParams p{};
  p.x_n = x.strides(0);
  p.x_c = x.strides(-1);
  p.w_o = w.strides(0);
  p.w_c = w.strides(-1);
  uint64_t taps = 1;
  bool pointwise = true;
  for (int d = 0; d < 3; ++d) {
    int at = d - (3 - axes);
    bool real = at >= 0 && at < int(real_axes.size());
    int a = real ? real_axes[at] : 0;
    p.x_s[d] = real ? x.strides(a + 1) : 0;
    p.w_s[d] = real ? w.strides(a + 1) : 0;
    p.x_size[d] = real ? x.shape(a + 1) : 1;
    p.w_size[d] = real ? w.shape(a + 1) : 1;
    p.y_size[d] = real ? out.shape(a + 1) : 1;
    p.stride[d] = real ? kernel_strides_[a] : 1;
    p.pad[d] = real ? padding_lo_[a] : 0;
    p.w_dilation[d] = real ? kernel_dilation_[a] : 1;
    p.x_dilation[d] = real ? input_dilation_[a] : 1;
    taps *= p.w_size[d];
    pointwise = pointwise && p.w_size[d] == 1 && p.stride[d] == 1 &&
        p.y_size[d] == p.x_size[d] && p.pad[d] == 0;
  }
  p.outputs = out.shape(-1);
  p.channels = w.shape(-1);
  uint32_t groups = p.channels ? x.shape(-1) / p.channels : groups_;
  p.group_outputs = p.outputs / groups;
  p.flip = flip_;

  auto large = [](bool l) { return l ? "LARGE" : "SMALL"; };
  uint64_t rows = out.size() / p.outputs;
  uint64_t depth = taps * p.channels;

  // Much work, or long sums, make a product of matrices, w's being the
  // transposed one.
  constexpr uint64_t few = uint64_t(1) << 20, long_sum = 1024;
  bool product =
      depth >= long_sum || (depth >= 8 && rows * p.outputs >= few / depth);
  if (groups == 1 && product && depth <= INT32_MAX && rows <= INT32_MAX) {
    int k = depth, n = p.outputs;
    array wt = transposed(matrix(row_contiguous(w, enc), {n, k}));
    if (pointwise) {
      array a = matrix(row_contiguous(x, enc), {int(rows), k});
      array y = matrix(out, {int(rows), n});
      run_gemm(enc, {"conv", a, wt}, y);
      return;
    }
    // Unfolded in parts, so that the copies of x stay small.
    constexpr uint64_t part_bytes = uint64_t(1) << 28;
    uint64_t part = std::max<uint64_t>(
        std::min(rows, part_bytes / (depth * out.itemsize())), 1);
    bool vec = by_fours(x, p.channels);
    array unfolded = enc.temporary({int(part), k}, out.dtype());
    auto& k_unfold = enc.kernel(
        "conv",
        {{"T", type},
         {"MODE", int(Unfold)},
         {"AXES", axes},
         {"VEC", int(vec)},
         {large(needs_large_index(x) || needs_large_index(unfolded)), 1}});
    for (p.first = 0; p.first < rows; p.first += part) {
      int m = std::min(part, rows - p.first);
      array a = matrix(unfolded, {m, k});
      array y = matrix(out, {m, n}, p.first);
      p.items = a.size() / (vec ? 4 : 1);
      enc.dispatch(k_unfold, {x}, {a}, p, linear(p.items, 128));
      run_gemm(enc, {"conv", a, wt}, y);
    }
    return;
  }

  bool big =
      needs_large_index(x) || needs_large_index(w) || needs_large_index(out);
  if (axes == 1 && p.channels == 1 && p.x_dilation[2] == 1) {
    int run = p.y_size[2] >= 4 ? 8 : 1;
    p.items =
        uint64_t(x.shape(0)) * ((p.y_size[2] + run - 1) / run) * p.outputs;
    auto& k = enc.kernel(
        "conv",
        {{"T", type},
         {"MODE", int(Depthwise)},
         {"AXES", axes},
         {"VEC", 0},
         {"RUN", run},
         {large(big), 1}});
    enc.dispatch(k, {x, w}, {out}, p, linear(p.items, 128));
    return;
  }
  bool vec = by_fours(x, p.channels) && by_fours(w, p.channels);
  p.items = out.size();
  auto& k = enc.kernel(
      "conv",
      {{"T", type},
       {"MODE", int(Direct)},
       {"AXES", axes},
       {"VEC", int(vec)},
       {large(big), 1}});
  enc.dispatch(k, {x, w}, {out}, p, linear(p.items, 128));
}

} // namespace mlx::core
