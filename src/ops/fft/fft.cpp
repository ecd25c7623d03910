#include "kernels/fft/fft.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <sstream>

#include "mlx/primitives.h"
#include "mlx/utils.h"
#include "ops/fft/plan.h"
#include "ops/layout.h"

namespace mlx::core {

using namespace vulkan;

namespace {

// An axis of an array, seen as outer x extent x inner. x may hold only the
// first half of a Hermitian axis, and y only that of the result.
struct Axis {
  uint64_t outer, inner;
  uint32_t extent, x_extent, y_extent;
  bool inverse;
  float scale;
};

void passes(
    StreamEncoder& enc,
    const array& x,
    array& y,
    const Axis& axis,
    const FftPlan& plan) {
  auto& lengths = plan.lengths;
  FftArgs p{};
  p.inner = axis.inner;
  p.extent = axis.extent;
  p.inverse = axis.inverse;
  p.n1 = lengths[0];
  p.n2 = lengths.size() == 3 ? lengths[1] : 1;
  p.prefix = 1;
  p.suffix = axis.extent;
  array at = x;
  p.x_extent = axis.x_extent;
  for (size_t i = 0; i < lengths.size(); ++i) {
    p.n = lengths[i];
    p.suffix /= p.n;
    p.last = i + 1 == lengths.size();
    p.scale = axis.scale;
    p.y_extent = p.last ? axis.y_extent : axis.extent;
    p.lines = axis.outer * axis.inner * (axis.extent / p.n);
    FftPass pass = plan_fft_pass(plan.items, p.lines, p.n, i > 0);
    p.stages = pass.radices.size();
    std::copy(pass.radices.begin(), pass.radices.end(), p.radices);
    p.group_lines = pass.group_lines;
    // Only the last pass moves items; those between work in place.
    array to = p.last ? y
        : i > 0
        ? at
        : enc.temporary(
              {int(axis.outer), int(axis.extent), int(axis.inner)}, complex64);
    FftVariant variant{
        .T = type_of(at),
        .U = type_of(to),
        .ITEMS = plan.items,
        .CAREFUL = i > 0};
    // Upper bound: with radix n, each item takes a complex sum of n items.
    double radices = 0;
    for (uint32_t radix : pass.radices) {
      radices += radix;
    }
    Work work{.flops = 8.0 * p.lines * p.n * radices};
    enc.dispatch(variant, {at}, {to}, p, linear(p.lines, p.group_lines), work);
    at = to;
    p.x_extent = axis.extent;
    p.prefix *= p.n;
  }
}

// Sets the arguments of fft_radix.comp's last pass: `rows` results per outer
// index, rows_1 of them by the first of `lengths`.
void set_last(
    FftRadixArgs& p,
    const Axis& axis,
    const std::vector<uint32_t>& lengths,
    uint64_t rows,
    uint32_t rows_1) {
  bool several = lengths.size() > 1;
  p.columns = rows;
  p.rows_1 = several ? rows_1 : 1;
  p.n1 = several ? lengths[0] : 1;
  p.n2 = lengths.size() == 3 ? lengths[1] : 1;
  p.x_outer = rows * p.x_held * axis.inner;
  p.y_outer = axis.y_extent * axis.inner;
  p.extent = axis.extent;
  p.y_held = axis.y_extent;
  p.scale = axis.scale;
}

// Computes only one of the Hermitian halves of a real axis.
void radix_passes(
    StreamEncoder& enc,
    const array& x,
    array& y,
    const Axis& axis,
    const std::vector<uint32_t>& lengths) {
  bool halves = axis.y_extent < axis.extent;
  FftRadixArgs p{};
  p.inner = axis.inner;
  p.inverse = axis.inverse;
  p.x_extent = axis.extent;
  p.x_held = axis.x_extent;
  uint64_t outer = axis.outer;
  uint32_t rows_1 = 1;
  array at = x;
  for (size_t i = 0; i < lengths.size(); ++i) {
    uint32_t n = lengths[i];
    bool last = i + 1 == lengths.size();
    uint64_t rows = outer / axis.outer;
    p.suffix = p.x_extent / n;
    p.line_turn = UINT64_MAX / n + 1;
    p.axis_turn = UINT64_MAX / p.x_extent + 1;
    if (last) {
      set_last(p, axis, lengths, rows, rows_1);
    } else {
      p.columns = p.x_held < p.x_extent ? p.suffix / 2 + 1 : p.suffix;
      p.y_rows = i == 0 && halves ? n / 2 + 1 : n;
      p.x_outer = p.x_held * axis.inner;
      p.y_outer = uint64_t(p.y_rows) * p.columns * axis.inner;
      rows_1 = i == 0 ? p.y_rows : rows_1;
    }
    uint64_t lines = (last ? axis.outer : outer) * p.columns * axis.inner;
    p.lines = lines;
    // A pass works in place unless it reduces the number of items.
    bool stays = i > 0 && p.x_held == p.x_extent;
    array to = last ? y
        : stays
        ? at
        : enc.temporary(
              {int(outer), int(p.y_outer / axis.inner), int(axis.inner)},
              complex64);
    FftRadixVariant v =
        plan_radix_pass(enc.target(), lines, n, last, rows, axis.inner);
    v.T = type_of(at);
    v.U = type_of(to);
    Work work{.flops = 5.0 * lines * n * std::bit_width(n)};
    enc.dispatch(v, {at}, {to}, p, linear(lines, v.LINES), work);
    at = to;
    outer *= p.y_rows;
    p.x_extent = p.suffix;
    p.x_held = p.columns;
  }
}

void transform(StreamEncoder& enc, const array& x, array& y, const Axis& axis);

// Bluestein's algorithm, a convolution, for lengths with a large prime factor.
void bluestein(StreamEncoder& enc, const array& x, array& y, const Axis& axis) {
  uint32_t wide = 1;
  while (wide < 2 * axis.extent - 1) {
    wide *= 2;
  }
  ChirpArgs p{};
  p.extent = axis.extent;
  p.wide = wide;
  p.inverse = axis.inverse;
  int lines = axis.outer * axis.inner;
  array u = enc.temporary({lines, int(wide)}, complex64);
  array w = enc.temporary({1, int(wide)}, complex64);
  auto step = [&](const char* name, const array& from, array& to) {
    ChirpVariant variant{.T = type_of(from), .U = type_of(to), .STEP = name};
    p.size = to.size();
    enc.dispatch(variant, {from}, {to}, p, linear(p.size, 256));
  };
  Axis convolved{uint64_t(lines), 1, wide, wide, wide, false, 1};
  p.inner = axis.inner;
  p.held = axis.x_extent;
  step("Spread", x, u);
  step("Chirp", w, w);
  transform(enc, u, u, convolved);
  convolved.outer = 1;
  transform(enc, w, w, convolved);
  step("Product", w, u);
  convolved = {uint64_t(lines), 1, wide, wide, wide, true, 1.0f / wide};
  transform(enc, u, u, convolved);
  p.held = axis.y_extent;
  p.scale = axis.scale;
  step("Gathered", u, y);
}

// Transforms an axis; y may be x.
void transform(StreamEncoder& enc, const array& x, array& y, const Axis& axis) {
  auto lengths =
      plan_radix_lengths(enc.caps(), axis.outer, axis.extent, axis.inner);
  if (!lengths.empty()) {
    return radix_passes(enc, x, y, axis, lengths);
  }
  FftPlan plan = plan_fft(enc.caps(), axis.outer * axis.inner, axis.extent);
  if (plan.lengths.empty()) {
    bluestein(enc, x, y, axis);
  } else {
    passes(enc, x, y, axis, plan);
  }
}

uint64_t product(const Shape& shape, int begin, int end) {
  return std::accumulate(
      shape.begin() + begin,
      shape.begin() + end,
      uint64_t(1),
      std::multiplies<uint64_t>());
}

} // namespace

void FFT::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = encoder(stream());
  const array in = row_contiguous(inputs[0], enc);
  const Shape& full = real_ && inverse_ ? out.shape() : in.shape();

  // The half axis is the first of a real transform and the last of its inverse.
  std::vector<size_t> axes = axes_;
  if (!(real_ && inverse_)) {
    std::reverse(axes.begin(), axes.end());
  }
  array at = in;
  for (size_t i = 0; i < axes.size(); ++i) {
    int a = axes[i];
    bool last = i + 1 == axes.size();
    bool half = real_ && axes[i] == axes_.back();
    uint64_t extent = full[a];
    if (extent > uint64_t(1) << 30) {
      std::ostringstream msg;
      msg << "[fft] The Vulkan backend transforms axes of at most 2^30 items; "
          << "got the input shape " << in.shape() << " and axis " << a << ".";
      throw std::invalid_argument(msg.str());
    }
    array to = last || !(real_ && inverse_) ? out
        : i > 0                             ? at
                : enc.temporary(in.shape(), complex64);
    Axis axis{
        product(in.shape(), 0, a),
        product(in.shape(), a + 1, in.ndim()),
        uint32_t(extent),
        uint32_t(at.shape(a)),
        uint32_t(half && !inverse_ ? out.shape(a) : extent),
        inverse_,
        inverse_ ? 1.0f / extent : 1.0f};
    if (real_ && !inverse_ && !half) {
      // The half axis comes first and has its length in out from here on.
      axis.outer = product(out.shape(), 0, a);
      axis.inner = product(out.shape(), a + 1, out.ndim());
    }
    transform(enc, at, to, axis);
    at = to;
  }
}

} // namespace mlx::core
