#include "ops/reduce/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "ops/layout.h"
#include "ops/reduce/plan.h"
#include "ops/rows/rows.h"

namespace mlx::core {

namespace vulkan {

namespace {

static_assert(max_reduce_ndim == max_ndim);

// Names in the order of Reduce::ReduceType.
constexpr const char* op_names[] = {"And", "Or", "Sum", "Prod", "Min", "Max"};

// Elements may be combined in any order. With the largest strides first,
// adjacent axes merge and the innermost loop has the least stride.
Axes reduced_nest(const array& x, const std::vector<int>& axes) {
  std::vector<std::pair<int64_t, int>> order; // stride, extent
  for (int a : axes) {
    if (x.shape(a) != 1) {
      order.emplace_back(x.strides()[a], x.shape(a));
    }
  }
  std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  Axes nest;
  for (auto [stride, extent] : order) {
    nest.shape.push_back(extent);
    nest.strides.push_back(stride);
  }
  return collapsed(nest.shape, nest.strides);
}

Axes kept_nest(const array& x, const std::vector<int>& axes) {
  Axes nest;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) {
      nest.shape.push_back(x.shape(d));
      nest.strides.push_back(x.strides()[d]);
    }
  }
  return collapsed(nest.shape, nest.strides);
}

// A reduction: the axes of its outputs and of the elements of each.
struct Job {
  const char* op;
  Axes kept, reduced;
  bool large;
};

template <int NDIM>
ReduceArgs<NDIM> args_of(const Job& job, const ReduceParts& parts) {
  return {
      parts,
      nest_args<NDIM>(job.kept.shape, job.kept.strides),
      nest_args<NDIM>(job.reduced.shape, job.reduced.strides)};
}

// Whether all strides but the innermost are multiples of four.
bool outer_fours(const Axes& kept) {
  auto outer = leading(kept.strides, 1);
  return std::ranges::all_of(outer, [](int64_t s) { return s % 4 == 0; });
}

// Describes sums of items of rows that take one invocation for each output.
Descriptor sum_of(const Job& job, Type type) {
  auto &kept = job.kept, &reduced = job.reduced;
  if (std::string_view(job.op) != "Sum" || reduced.shape.size() != 1 ||
      kept.shape.size() > 2 || elements(kept.shape) > INT32_MAX) {
    return {};
  }
  uint32_t extent = reduced.shape[0], outputs = elements(kept.shape);
  uint32_t inner = kept.shape.back();
  int64_t step = reduced.strides[0];
  if (step == 1 && kept.shape.size() == 1 &&
      (outputs == 1 || kept.strides[0] == extent)) {
    return SumRecord{type, outputs, extent, 1};
  }
  bool columns = kept.strides.back() == 1 && step == inner &&
      (kept.shape.size() == 1 || kept.strides[0] == int64_t(extent) * inner);
  return columns ? SumRecord{type, outputs / inner, extent, inner}
                 : Descriptor{};
}

void run(StreamEncoder& enc, const array& x, array& out, const Job& job) {
  size_t ndim = std::max(job.kept.shape.size(), job.reduced.shape.size());
  variant_ndim(ndim, "reduce"); // throws beyond max_ndim
  ReducePlan plan = plan_reduce({
      .op = job.op,
      .in = type_of(x),
      .out = type_of(out),
      .outputs = static_cast<uint64_t>(elements(job.kept.shape)),
      .extent = static_cast<uint64_t>(elements(job.reduced.shape)),
      .kept_extent = static_cast<uint64_t>(job.kept.shape.back()),
      .kept_stride = job.kept.strides.back(),
      .reduced_stride = job.reduced.strides.back(),
      .even = ndim == 1,
      .even_reduced = job.reduced.shape.size() == 1,
      .kept_fours = outer_fours(job.kept),
      .aligned = by_fours(x),
      .large = job.large,
  });
  int outputs = plan.parts.outputs, splits = plan.parts.splits;
  std::visit(
      [&](const auto& variant) {
        bool floats = variant.Acc == Type::f32;
        constexpr bool rows =
            std::is_same_v<std::decay_t<decltype(variant)>, ReduceVariant>;
        Shape parts = rows ? Shape{outputs, splits} : Shape{splits, outputs};
        array to = splits == 1
            ? out
            : enc.temporary(parts, floats ? float32 : out.dtype());
        Descriptor descriptor;
        if (variant.LANES == 1 && splits == 1 && floats &&
            variant.T == variant.U) {
          descriptor = sum_of(job, variant.T);
        }
        with_constant<1, max_ndim>(variant.NDIM, [&](auto n) {
          enc.dispatch(
              variant,
              {x},
              {to},
              args_of<n>(job, plan.parts),
              linear(plan.groups),
              {},
              descriptor);
        });
        if (splits > 1) {
          int64_t next = rows ? splits : 1, step = rows ? 1 : outputs;
          run(enc,
              to,
              out,
              {job.op, {{outputs}, {next}}, {{splits}, {step}}, false});
        }
      },
      plan.variant);
}

} // namespace

void reduce_into(
    StreamEncoder& enc,
    const array& in,
    array& out,
    Reduce::ReduceType op,
    const std::vector<int>& axes) {
  if (out.size() == 0) {
    return;
  }
  bool large = needs_large_index(in) || needs_large_index(out);
  run(enc,
      in,
      out,
      {op_names[op], kept_nest(in, axes), reduced_nest(in, axes), large});
}

} // namespace vulkan

void Reduce::eval_gpu(const std::vector<array>& inputs, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = vulkan::encoder(stream());
  vulkan::reduce_into(enc, inputs[0], out, reduce_type_, axes_);
}

} // namespace mlx::core
