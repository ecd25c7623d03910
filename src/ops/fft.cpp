#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>

#include "mlx/primitives.h"
#include "mlx/utils.h"

#include "ops/layout.h"
#include "vk/caps.h"

namespace mlx::core {

using namespace vulkan;

namespace {

struct FftParams { // mirrors kernels/fft/fft.comp
  uint64_t lines, inner;
  uint32_t extent, x_extent, y_extent;
  uint32_t n, prefix, suffix, n1, n2;
  uint32_t group_lines, last, inverse, stages;
  float scale;
  uint32_t radices[32];
};

struct ChirpParams { // mirrors kernels/fft/chirp.comp
  uint64_t size, inner;
  uint32_t extent, held, wide, inverse;
  float scale;
};

enum ChirpMode { Spread, Chirp, Product, Gathered };

// One axis of an array, seen as outer x extent x inner. x may hold only the
// first half of a Hermitian axis, y only that of the result.
struct Axis {
  uint64_t outer, inner;
  uint32_t extent, x_extent, y_extent;
  bool inverse;
  float scale;
};

// The factors of n in the order of the stages. The last stage cancels the most:
// a wide one, of up to 2^widest, keeps its terms, and so the error, small.
std::vector<uint32_t> factors(uint32_t n, int widest = 3) {
  std::vector<uint32_t> found;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) {
    ++twos;
  }
  for (uint32_t f = 3; n > 1; f = f * f > n ? n : f + 2) {
    for (; n % f == 0; n /= f) {
      found.push_back(f);
    }
  }
  int wide = std::min(twos, widest);
  twos -= wide;
  found.insert(found.end(), twos % 2, 2);
  found.insert(found.end(), twos / 2, 4);
  found.insert(found.end(), wide > 0, uint32_t(1) << wide);
  return found;
}

// Lengths of at most `most` whose product is n, as few and as even as can be;
// none if there is no such product of up to `parts`.
std::vector<uint32_t> split(uint32_t n, uint32_t most, int parts) {
  if (n <= most) {
    return {n};
  }
  std::vector<uint32_t> best;
  if (parts == 1) {
    return best;
  }
  uint32_t widest = most + 1;
  for (uint32_t d = 2; d <= most; ++d) {
    if (n % d) {
      continue;
    }
    auto rest = split(n / d, most, parts - 1);
    if (rest.empty()) {
      continue;
    }
    rest.push_back(d);
    uint32_t wide = *std::max_element(rest.begin(), rest.end());
    if (best.empty() || rest.size() < best.size() ||
        (rest.size() == best.size() && wide < widest)) {
      best = rest;
      widest = wide;
    }
  }
  return best;
}

void passes(
    StreamEncoder& enc,
    const array& x,
    array& y,
    const Axis& axis,
    const std::vector<uint32_t>& lengths,
    int items) {
  FftParams p{};
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
    bool careful = i > 0;
    auto radices = factors(p.n, careful ? 5 : 3);
    p.stages = radices.size();
    std::copy(radices.begin(), radices.end(), p.radices);
    // Enough lines to fill a workgroup, fewer if that leaves too few groups.
    uint64_t wanted = std::max<uint64_t>(p.lines / 128, 256 / p.n);
    p.group_lines =
        std::clamp<uint64_t>(wanted, 1, std::max(items * 256 / p.n, 1u));
    // Only the last pass moves items; the ones between stay in place.
    array to = p.last ? y
        : i > 0
        ? at
        : enc.temporary(
              {int(axis.outer), int(axis.extent), int(axis.inner)}, complex64);
    auto& k = enc.kernel(
        "fft/fft",
        {{"T", type_of(at)},
         {"U", type_of(to)},
         {"ITEMS", items},
         {"CAREFUL", int(careful)}});
    enc.dispatch(k, {at}, {to}, p, linear(p.lines, p.group_lines));
    at = to;
    p.x_extent = axis.extent;
    p.prefix *= p.n;
  }
}

void transform(StreamEncoder& enc, const array& x, array& y, const Axis& axis);

// Lengths with a large prime factor, by a convolution of a power of two.
void bluestein(StreamEncoder& enc, const array& x, array& y, const Axis& axis) {
  uint32_t wide = 1;
  while (wide < 2 * axis.extent - 1) {
    wide *= 2;
  }
  ChirpParams p{};
  p.extent = axis.extent;
  p.wide = wide;
  p.inverse = axis.inverse;
  int lines = axis.outer * axis.inner;
  array u = enc.temporary({lines, int(wide)}, complex64);
  array w = enc.temporary({1, int(wide)}, complex64);
  auto step = [&](ChirpMode mode, const array& from, array& to) {
    auto& k = enc.kernel(
        "fft/chirp",
        {{"T", type_of(from)}, {"U", type_of(to)}, {"MODE", int(mode)}});
    p.size = to.size();
    enc.dispatch(k, {from}, {to}, p, linear(p.size, 256));
  };
  Axis convolved{uint64_t(lines), 1, wide, wide, wide, false, 1};
  p.inner = axis.inner;
  p.held = axis.x_extent;
  step(Spread, x, u);
  step(Chirp, w, w);
  transform(enc, u, u, convolved);
  convolved.outer = 1;
  transform(enc, w, w, convolved);
  step(Product, w, u);
  convolved = {uint64_t(lines), 1, wide, wide, wide, true, 1.0f / wide};
  transform(enc, u, u, convolved);
  p.held = axis.y_extent;
  p.scale = axis.scale;
  step(Gathered, u, y);
}

// y may be x.
void transform(StreamEncoder& enc, const array& x, array& y, const Axis& axis) {
  // Two tables of complex numbers in shared memory.
  int items = enc.caps().shared_memory >= 32768 ? 8 : 4;
  uint32_t most = items * 256;
  auto found = factors(axis.extent);
  uint32_t largest =
      found.empty() ? 1 : *std::max_element(found.begin(), found.end());
  // A convolution of many lines would take too much memory.
  bool many = axis.outer * axis.inner * axis.extent > uint64_t(1) << 26;
  std::vector<uint32_t> lengths;
  if (largest <= (many ? most : 256)) {
    lengths = split(axis.extent, most, 3);
  }
  if (lengths.empty()) {
    bluestein(enc, x, y, axis);
  } else {
    passes(enc, x, y, axis, lengths, items);
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
  if (out.size() == 0) {
    return;
  }
  auto& enc = encoder(stream());
  const array in = row_contiguous(inputs[0], enc);
  const Shape& full = real_ && inverse_ ? out.shape() : in.shape();

  // The half axis is the first of a real transform, the last of its inverse.
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
      // The axes before the half one are whole, the half one is shorter.
      axis.outer = product(out.shape(), 0, a);
      axis.inner = product(out.shape(), a + 1, out.ndim());
    }
    transform(enc, at, to, axis);
    at = to;
  }
}

} // namespace mlx::core
