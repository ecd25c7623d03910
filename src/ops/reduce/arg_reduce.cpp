#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/reduce/plan.h"

namespace mlx::core {

using namespace vulkan;

namespace {

template <int NDIM>
void run(
    StreamEncoder& enc,
    const array& in,
    array& out,
    const ArgReducePlan& plan,
    ArgReduceArgs<NDIM> args) {
  auto& parts = args.parts;
  if (parts.splits == 1) {
    enc.dispatch(plan.variant, {in}, {out}, args, linear(plan.groups));
    return;
  }
  array found = enc.temporary(
      {static_cast<int>(parts.splits), static_cast<int>(parts.outputs)},
      uint32);
  enc.dispatch(plan.variant, {in}, {found}, args, linear(plan.groups));
  parts = {parts.outputs, parts.splits, parts.splits, 1};
  enc.dispatch(
      plan.join(), {in, found}, {out}, args, linear(plan.join_groups()));
}

} // namespace

void ArgReduce::eval_gpu(const std::vector<array>& inputs, array& out) {
  const array& in = inputs[0];
  out.set_data(allocator::malloc(out.nbytes()));
  auto& enc = encoder(stream());
  auto [shape, strides] = collapsed(
      remove_index(in.shape(), axis_), remove_index(in.strides(), axis_));
  variant_ndim(shape.size(), "arg_reduce"); // throws beyond max_ndim
  ArgReducePlan plan = plan_arg_reduce({
      .op = reduce_type_ == ArgReduce::ArgMin ? "ArgMin" : "ArgMax",
      .in = type_of(in),
      .outputs = out.size(),
      .extent = static_cast<uint64_t>(in.shape(axis_)),
      .axis_stride = in.strides()[axis_],
      .kept_stride = strides.back(),
      .even = shape.size() == 1,
      .large = needs_large_index(in) || needs_large_index(out),
  });
  with_constant<1, max_ndim>(plan.variant.NDIM, [&](auto n) {
    run<n>(
        enc,
        in,
        out,
        plan,
        {plan.parts, in.strides()[axis_], nest_args<n>(shape, strides)});
  });
}

} // namespace mlx::core
