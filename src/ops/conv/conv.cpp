#include <algorithm>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/conv/depthwise.h"
#include "mlx/primitives.h"
#include "ops/conv/plan.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"
#include "vk/config.h"

namespace mlx::core {

using namespace vulkan;

namespace {

// Whether accesses to `items` channels at a time are aligned at every position.
bool aligned(const array& a, uint32_t items) {
  bool fits = a.strides(-1) == 1 && a.offset() % (items * a.itemsize()) == 0;
  for (int d = 0; d < a.ndim() - 1; ++d) {
    fits = fits && (a.shape(d) == 1 || a.strides(d) % items == 0);
  }
  return fits;
}
uint32_t aligned_items(const array& a) {
  return aligned(a, 8) ? 8 : aligned(a, 4) ? 4 : 1;
}
bool by_fours(const array& a, uint32_t channels) {
  return channels % 4 == 0 && aligned(a, 4);
}

// Rows [first, first + shape[0]) of a row-contiguous array, as a matrix.
array matrix(const array& a, Shape shape, int64_t first = 0) {
  int64_t row = shape[1];
  return view(a, std::move(shape), {row, 1}, first * row);
}

// Axes of x, w and y that are longer than 1 or padded. Without the others,
// conv2d of a line has the bits of conv1d.
std::vector<int> real_axes(
    const array& x,
    const array& w,
    const array& out,
    const std::vector<int>& padding) {
  std::vector<int> axes;
  for (int a = 0; a < int(out.ndim()) - 2; ++a) {
    if (x.shape(a + 1) != 1 || w.shape(a + 1) != 1 || out.shape(a + 1) != 1 ||
        padding[a] != 0) {
      axes.push_back(a);
    }
  }
  return axes;
}

// A convolution: operands, the kernel's arguments except `items` and `first`,
// and its number of real axes.
struct Job {
  StreamEncoder& enc;
  const array& x;
  const array& w;
  array& out;
  uint32_t axes = 1;
  ConvArgs args{};

  uint64_t rows() const {
    return out.size() / args.outputs;
  }
  // Items of x that an item of y reads.
  uint64_t depth() const {
    auto& size = args.w_size;
    return uint64_t(size[0]) * size[1] * size[2] * args.channels;
  }
  // Whether rows of y are products of rows of x with w.
  bool pointwise() const {
    bool is = true;
    for (int d = 0; d < 3; ++d) {
      is = is && args.w_size[d] == 1 && args.stride[d] == 1 &&
          args.y_size[d] == args.x_size[d] && args.pad[d] == 0;
    }
    return is;
  }
  bool large() const {
    return needs_large_index(x) || needs_large_index(w) ||
        needs_large_index(out);
  }
};

// Arguments with axes [first, 3) of p, for kernels that take fewer.
template <typename Args>
Args with_axes(const ConvArgs& p, int first) {
  Args q{.x_n = p.x_n};
  for (int d = first; d < 3; ++d) {
    q.x_s[d - first] = p.x_s[d];
    q.x_size[d - first] = p.x_size[d];
    q.w_size[d - first] = p.w_size[d];
    q.y_size[d - first] = p.y_size[d];
    q.stride[d - first] = p.stride[d];
    q.pad[d - first] = p.pad[d];
    q.w_dilation[d - first] = p.w_dilation[d];
  }
  q.flip = p.flip;
  return q;
}

// One product that gathers tiles of x's matrix; returns false if unsuitable.
bool convolve_by_tiles(Job& job) {
  auto& [enc, x, w, out, axes, p] = job;
  ConvProblem problem{
      .type = type_of(out),
      .rows = job.rows(),
      .groups = p.outputs / p.group_outputs,
      .group_outputs = p.group_outputs,
      .channels = p.channels,
      .taps = job.depth() / p.channels,
      .tap_sum = 0,
      .axes = axes,
      .large = job.large()};
  for (uint32_t d = 3 - axes; d < 3; ++d) {
    problem.tap_sum += p.w_size[d];
    problem.dilated = problem.dilated || p.x_dilation[d] != 1;
  }
  array weights = row_contiguous(w, enc);
  problem.x_items = aligned_items(x);
  problem.w_items = aligned_items(weights);
  problem.y_items = p.outputs % 8 == 0 && out.offset() % 16 == 0 ? 8 : 1;
  problem.may_split = !config().disabled("splits");
  auto plan = plan_conv(enc.target(), problem);
  if (!plan) {
    return false;
  }
  auto q = with_axes<ConvProductArgs>(p, 0);
  std::ranges::copy(p.x_dilation, q.x_dilation);
  q.x_c = p.x_c;
  q.rows = problem.rows;
  q.outputs = p.outputs;
  q.group_outputs = p.group_outputs;
  q.channels = p.channels;
  q.groups = problem.groups;
  q.depth = job.depth();
  q.tiles_m = plan->tiles_m;
  q.tiles_n = plan->tiles_n;
  q.splits = plan->splits;
  q.k_split = plan->k_split;
  bool split = plan->splits > 1;
  array target = split
      ? enc.temporary(
            {int(plan->splits), int(job.rows()), int(p.outputs)}, float32)
      : out;
  Grid grid = linear(plan->workgroups(problem));
  Work work{.flops = 2.0 * out.size() * job.depth()};
  std::visit(
      [&, &enc = enc, &x = x](auto& variant) {
        enc.dispatch(variant, {x, weights}, {target}, q, grid, work);
      },
      plan->variant);
  if (split) {
    sum_parts(enc, target, plan->splits, out);
  }
  return true;
}

// Products of matrices: x's rows, unfolded if necessary, with w transposed.
void convolve_by_products(Job& job) {
  auto& [enc, x, w, out, axes, p] = job;
  uint64_t rows = job.rows();
  int k = job.depth(), n = p.outputs;
  array wt = view(row_contiguous(w, enc), {k, n}, {1, k});
  if (job.pointwise()) {
    array a = matrix(row_contiguous(x, enc), {int(rows), k});
    array y = matrix(out, {int(rows), n});
    run_gemm(enc, {a, wt}, y);
    return;
  }
  // Unfolds in parts, so that the copies of x stay small.
  constexpr uint64_t part_bytes = uint64_t(1) << 28;
  uint64_t part = std::max<uint64_t>(
      std::min(rows, part_bytes / (job.depth() * out.itemsize())), 1);
  bool vec = by_fours(x, p.channels);
  array unfolded = enc.temporary({int(part), k}, out.dtype());
  ConvVariant unfold{
      .T = type_of(out),
      .MODE = CONV_UNFOLD,
      .AXES = axes,
      .VEC = vec,
      .RUN = 1,
      .LARGE = needs_large_index(x) || needs_large_index(unfolded)};
  for (p.first = 0; p.first < rows; p.first += part) {
    int m = std::min(part, rows - p.first);
    array a = matrix(unfolded, {m, k});
    array y = matrix(out, {m, n}, p.first);
    p.items = a.size() / (vec ? 4 : 1);
    enc.dispatch(unfold, {x}, {a}, p, linear(p.items, 128));
    run_gemm(enc, {a, wt}, y);
  }
}

// Each channel by itself, along two axes; returns false if unsuitable.
bool convolve_channels(Job& job) {
  auto& [enc, x, w, out, axes, p] = job;
  uint64_t taps = job.depth();
  bool dilated =
      std::ranges::any_of(p.x_dilation, [](int d) { return d != 1; });
  uint64_t along =
      (p.y_size[2] + ConvDepthwiseVariant::RUN - 1) / ConvDepthwiseVariant::RUN;
  uint64_t runs = x.shape(0) * along * p.y_size[1];
  if (axes != 2 || dilated || p.channels != 1 || p.group_outputs != 1 ||
      !by_fours(x, p.outputs) || out.offset() % (4 * out.itemsize()) != 0 ||
      taps > 64 || runs > INT32_MAX) {
    return false;
  }
  array weights = row_contiguous(w, enc);
  auto q = with_axes<ConvDepthwiseArgs>(p, 1);
  q.channels = p.outputs;
  q.taps = taps;
  q.runs = runs;
  uint32_t wide = q.w_size[1];
  bool slides = q.stride[1] == 1 && q.w_dilation[1] == 1 &&
      (wide == 3 || wide == 5 || wide == 7);
  ConvDepthwiseVariant v{
      .T = type_of(out),
      .TAPS = taps <= 16 ? 16u : 64u,
      .KW = slides ? wide : 0,
      .LARGE = job.large()};
  uint64_t blocks = (q.channels + v.BLOCK - 1) / v.BLOCK;
  enc.dispatch(
      v,
      {x, weights},
      {out},
      q,
      linear(blocks * ((runs + v.GROUP_RUNS - 1) / v.GROUP_RUNS)),
      {.flops = 2.0 * out.size() * taps});
  return true;
}

void convolve_directly(Job& job) {
  auto& [enc, x, w, out, axes, p] = job;
  bool depthwise = axes == 1 && p.channels == 1 && p.x_dilation[2] == 1;
  uint32_t run = depthwise && p.y_size[2] >= 4 ? 8 : 1;
  uint64_t runs = ceil_div(p.y_size[2], run);
  p.items = depthwise ? x.shape(0) * runs * p.outputs : out.size();
  ConvVariant variant{
      .T = type_of(out),
      .MODE = uint32_t(depthwise ? CONV_DEPTHWISE : CONV_DIRECT),
      .AXES = axes,
      .VEC = !depthwise && by_fours(x, p.channels) && by_fours(w, p.channels),
      .RUN = run,
      .LARGE = job.large()};
  enc.dispatch(
      variant,
      {x, w},
      {out},
      p,
      linear(p.items, 128),
      {.flops = 2.0 * out.size() * job.depth()});
}

} // namespace

void Convolution::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  const array& x = inputs[0];
  const array& w = inputs[1];
  auto axes = real_axes(x, w, out, padding_lo_);
  Job job{encoder(stream()), x, w, out};
  job.axes = std::max<uint32_t>(axes.size(), 1);
  auto& p = job.args;
  p.x_n = x.strides(0);
  p.x_c = x.strides(-1);
  p.w_o = w.strides(0);
  p.w_c = w.strides(-1);
  for (int d = 0; d < 3; ++d) {
    int at = d - (3 - int(job.axes));
    bool real = at >= 0 && at < int(axes.size());
    int a = real ? axes[at] : 0;
    p.x_s[d] = real ? x.strides(a + 1) : 0;
    p.w_s[d] = real ? w.strides(a + 1) : 0;
    p.x_size[d] = real ? x.shape(a + 1) : 1;
    p.w_size[d] = real ? w.shape(a + 1) : 1;
    p.y_size[d] = real ? out.shape(a + 1) : 1;
    p.stride[d] = real ? kernel_strides_[a] : 1;
    p.pad[d] = real ? padding_lo_[a] : 0;
    p.w_dilation[d] = real ? kernel_dilation_[a] : 1;
    p.x_dilation[d] = real ? input_dilation_[a] : 1;
  }
  p.outputs = out.shape(-1);
  p.channels = w.shape(-1);
  uint32_t groups = p.channels ? x.shape(-1) / p.channels : groups_;
  p.group_outputs = p.outputs / groups;
  p.flip = flip_;

  // With much work or long sums, matrix products are faster.
  constexpr uint64_t few = uint64_t(1) << 20, long_sum = 1024;
  uint64_t depth = job.depth(), rows = job.rows();
  bool product =
      depth >= long_sum || (depth >= 8 && rows * p.outputs >= few / depth);
  bool whole = groups == 1 && depth <= INT32_MAX && rows <= INT32_MAX;
  if (product && whole && job.pointwise()) {
    convolve_by_products(job);
  } else if (product && convolve_by_tiles(job)) {
  } else if (product && whole) {
    convolve_by_products(job);
  } else if (!convolve_channels(job)) {
    convolve_directly(job);
  }
}

} // namespace mlx::core
