#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ops/layout.h"
#include "ops/strided.h"

namespace mlx::core {

namespace vulkan {

namespace {

struct Nest {
  Shape shape;
  Strides strides;

  int64_t size() const {
    return elements(shape);
  }
  int64_t inner() const {
    return strides.back();
  }
  void collapse() {
    std::array<Strides, 1> one{std::move(strides)};
    vulkan::collapse(shape, one);
    strides = std::move(one[0]);
  }
};

struct ReduceParams { // mirrors kernels/reduce.comp, NDIM=1
  uint64_t outputs, extent, chunk, splits;
  int64_t kept_stride = 0, red_stride = 0;
};

struct ReduceNestParams { // NDIM=16
  uint64_t outputs, extent, chunk, splits;
  int32_t kept_ndim, red_ndim;
  int32_t kept_shape[max_ndim] = {}, red_shape[max_ndim] = {};
  int64_t kept_strides[max_ndim] = {}, red_strides[max_ndim] = {};
};

constexpr const char* op_names[] = {"And", "Or", "Sum", "Prod", "Min", "Max"};

constexpr int group_size = 256;

// What a kernel computes with: narrow types are reduced as 32-bit ones.
Type accumulator(Reduce::ReduceType op, Dtype out) {
  if (op == Reduce::And || op == Reduce::Or) {
    return Type::u32;
  }
  switch (out.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
    case Dtype::Val::uint16:
    case Dtype::Val::uint32:
      return Type::u32;
    case Dtype::Val::int8:
    case Dtype::Val::int16:
    case Dtype::Val::int32:
      return Type::i32;
    case Dtype::Val::uint64:
    case Dtype::Val::int64:
    case Dtype::Val::complex64:
      return type_of(out);
    default:
      return Type::f32;
  }
}

// The order in which elements are combined is free: largest strides first, so
// that neighbours merge and the innermost walk is the closest one.
Nest reduced_nest(const array& x, const std::vector<int>& axes) {
  std::vector<std::pair<int64_t, int>> order; // stride, extent
  for (int a : axes) {
    if (x.shape(a) != 1) {
      order.emplace_back(x.strides()[a], x.shape(a));
    }
  }
  std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  Nest nest;
  for (auto [stride, extent] : order) {
    nest.shape.push_back(extent);
    nest.strides.push_back(stride);
  }
  nest.collapse();
  return nest;
}

Nest kept_nest(const array& x, const std::vector<int>& axes) {
  Nest nest;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) {
      nest.shape.push_back(x.shape(d));
      nest.strides.push_back(x.strides()[d]);
    }
  }
  nest.collapse();
  return nest;
}

// One reduction, described by where its outputs start and what each walks.
struct Job {
  Reduce::ReduceType op;
  Nest kept, reduced;
  bool large;
};

template <typename Params>
Params params_of(const Job& job, uint64_t splits, uint64_t chunk) {
  Params p;
  p.outputs = job.kept.size();
  p.extent = job.reduced.size();
  p.chunk = chunk;
  p.splits = splits;
  if constexpr (std::is_same_v<Params, ReduceParams>) {
    p.kept_stride = job.kept.inner();
    p.red_stride = job.reduced.inner();
  } else {
    variant_ndim(job.kept.shape.size(), "reduce"); // throws beyond max_ndim
    variant_ndim(job.reduced.shape.size(), "reduce");
    p.kept_ndim = job.kept.shape.size();
    p.red_ndim = job.reduced.shape.size();
    std::copy(job.kept.shape.begin(), job.kept.shape.end(), p.kept_shape);
    std::copy(job.reduced.shape.begin(), job.reduced.shape.end(), p.red_shape);
    std::copy(job.kept.strides.begin(), job.kept.strides.end(), p.kept_strides);
    std::copy(
        job.reduced.strides.begin(), job.reduced.strides.end(), p.red_strides);
  }
  return p;
}

void run(StreamEncoder& enc, const array& x, array& out, const Job& job) {
  uint64_t outputs = job.kept.size();
  uint64_t extent = job.reduced.size();
  bool simple = job.kept.shape.size() == 1 && job.reduced.shape.size() == 1;
  // Neighbouring outputs read neighbouring items better than one output does.
  bool columns = std::abs(job.kept.inner()) < std::abs(job.reduced.inner()) &&
      job.kept.inner() != 0 && job.kept.shape.back() >= 16;

  int lanes = columns ? (extent <= 16 ? 1 : 8)
      : extent <= 16  ? 1
      : extent <= 512 && (outputs >= 64 || extent <= 128) ? 32
                                                          : group_size;
  // Few outputs of many elements: parts in parallel, then the parts.
  uint64_t groups = columns
      ? (outputs + group_size / lanes - 1) / (group_size / lanes)
      : (outputs * lanes + group_size - 1) / group_size;
  uint64_t part = columns ? 512 : 8192;
  uint64_t splits = 1, chunk = extent;
  if (groups < 256 && extent >= 2 * part) {
    splits = std::min((extent + part - 1) / part, 1024 / groups);
    chunk = ((extent + splits - 1) / splits + 1023) / 1024 * 1024;
    chunk = columns ? (extent + splits - 1) / splits : chunk;
    splits = (extent + chunk - 1) / chunk;
  }

  bool truth = job.op == Reduce::And || job.op == Reduce::Or;
  Type acc = accumulator(job.op, out.dtype());
  bool floats = acc == Type::f32;
  array parts = out;
  if (splits > 1) {
    parts = enc.temporary(
        {static_cast<int>(splits), static_cast<int>(outputs)},
        floats ? float32 : out.dtype());
  }
  bool vec = !columns && simple && floats && !truth && lanes > 1 &&
      job.reduced.inner() == 1 && extent % 4 == 0 &&
      job.kept.inner() % 4 == 0 && x.offset() % (4 * x.itemsize()) == 0 &&
      extent < (uint64_t(1) << 31);

  int ndim = simple ? 1 : max_ndim;
  const char* width = job.large ? "LARGE" : "SMALL";
  auto start = [&](const auto& params) {
    if (columns) {
      auto& k = enc.kernel(
          "reduce_col",
          {{"T", type_of(x)},
           {"U", type_of(parts)},
           {"Acc", acc},
           {"OP", op_names[job.op]},
           {"LANES", lanes},
           {"NDIM", ndim},
           {width, 1}});
      enc.dispatch(k, {x}, {parts}, params, linear(groups * splits));
    } else {
      auto& k = enc.kernel(
          "reduce",
          {{"T", type_of(x)},
           {"U", type_of(parts)},
           {"Acc", acc},
           {"OP", op_names[job.op]},
           {"LANES", lanes},
           {"NDIM", ndim},
           {"VEC", int(vec)},
           {width, 1}});
      enc.dispatch(
          k,
          {x},
          {parts},
          params,
          linear(outputs * splits, group_size / lanes));
    }
  };
  if (simple) {
    start(params_of<ReduceParams>(job, splits, chunk));
  } else {
    start(params_of<ReduceNestParams>(job, splits, chunk));
  }
  if (splits > 1) {
    Job rest{job.op, {{int(outputs)}, {1}}, {{int(splits)}, {}}, false};
    rest.reduced.strides.push_back(outputs);
    run(enc, parts, out, rest);
  }
}

} // namespace

void reduce_into(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Reduce::ReduceType op,
    const std::vector<int>& axes) {
  bool large = needs_large_index(in) || needs_large_index(out);
  run(enc, in, out, {op, kept_nest(in, axes), reduced_nest(in, axes), large});
}

} // namespace vulkan

void Reduce::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(stream());
  vulkan::reduce_into(enc, inputs[0], out, reduce_type_, axes_);
}

} // namespace mlx::core
