// QuantizedMatmul: rows times one matrix; stacked.cpp has all other products.
#include "ops/quant/qmm.h"

#include "ops/gemm/gemm.h"
#include "ops/layout.h"
#include "ops/path_stats.h"
#include "ops/quant/expert_cache.h"
#include "ops/tuned/tuned.h"
#include "vk/config.h"

namespace mlx::core {

void QuantizedMatmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  bool last_use = inputs[0].is_donatable();
  vulkan::QuantOperands o{
      .x = inputs[0],
      .w = inputs[1],
      .scales = inputs[2],
      .format = vulkan::format_of(mode_, bits_, group_size_),
      .transpose = transpose_,
      .last_use = last_use};
  if (inputs.size() == 4) {
    o.side = inputs[3];
  }
  vulkan::quantized_product(vulkan::encoder(stream()), std::move(o), out);
}

namespace vulkan {

namespace {

void make_matrix_contiguous(array& a, StreamEncoder& enc) {
  // The stride of an axis of one item has no meaning.
  bool contiguous = a.flags().row_contiguous ||
      ((a.strides(-1) == 1 || a.shape(-1) == 1) &&
       (a.shape(-2) == 1 || a.strides(-2) == a.shape(-1)));
  if (!contiguous) {
    a = row_contiguous(a, enc);
  }
}

// `plan`: null if the weights are dequantized first.
void count(const QuantShape& s, const QuantPlan* plan) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string shape = std::string(name_of(s.common.T)) + " m=" + text(s.m) +
      " n=" + text(s.n) + " k=" + text(s.k) + " batch=" + text(s.batch) +
      " bits=" + text(s.common.BITS) + " group=" + text(s.common.GROUP) +
      (s.common.SIDE == SIDE_BIASES ? " affine" : " fp") +
      (s.transpose ? " w^T" : " w") + (s.sorted ? " sorted" : "");
  if (!plan) {
    count_path("quantized products", shape, "dequantized first", "");
    return;
  }
  auto path = [&](const auto& v) {
    std::string name(v.file.substr(v.file.find('/') + 1));
    if constexpr (requires { v.ROWS; }) {
      return name + " rows=" + text(v.ROWS);
    } else if constexpr (requires { v.rows(); }) {
      return name + " " + text(v.rows()) + "x" + text(v.outputs());
    } else {
      return name + " " + text(v.BM) + "x" + text(v.BN);
    }
  };
  count_path(
      "quantized products", shape, std::visit(path, plan->kernel), plan->why);
}

// Rows of x times w. `args` lacks tiles and groups.
void rows_product(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    QuantOperands& o,
    ProductArgs& args,
    array& out) {
  pack_rows(enc, plan, shape, o.x, args.M, args.x_row);
  FewOperands inputs{o.x, o.w, o.scales};
  if (o.side) {
    inputs.add(*o.side);
  }
  Descriptor descriptor;
  if (auto* v = std::get_if<QmvVariant>(&plan.kernel)) {
    descriptor = ProductRecord{*v};
  } else if (auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel)) {
    descriptor = ProductRecord{*v};
  }
  run_planned(enc, plan, shape, inputs, args, nullptr, out, descriptor);
}

// Sizes, and whether operands allow loads of 16 bytes.
QuantShape
shape_of(const QuantOperands& o, const ProductArgs& args, const array& out) {
  QuantShape shape{
      .common = {{type_of(out), o.format, o.side.has_value()}, BATCH_ONE},
      .m = args.M,
      .n = args.N,
      .k = args.K,
      .transpose = o.transpose};
  shape.x_aligned = aligned16(o.x, args.x_row) && args.K % 8 == 0;
  shape.aligned = shape.x_aligned && aligned16(o.w);
  shape.sides_aligned =
      o.format.bias && aligned16(o.scales) && aligned16(*o.side);
  return shape;
}

} // namespace

void quantized_product(StreamEncoder& enc, QuantOperands&& o, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  make_matrix_contiguous(o.w, enc);
  uint64_t rows = out.size() / out.shape(-1);
  use_cached_experts(enc, o, rows);
  if (auto w = fetched_weights(o.w, rows, enc)) {
    o.w = *w;
  }
  make_matrix_contiguous(o.scales, enc);
  if (o.format.bias) {
    make_matrix_contiguous(*o.side, enc);
  } else if (o.side) {
    o.side = row_contiguous(*o.side, enc);
  }
  if (o.x.strides(-1) != 1 && o.x.shape(-1) != 1) {
    o.x = row_contiguous(o.x, enc);
  }
  std::optional<int64_t> x_row;
  if (!o.rhs && o.w.ndim() == 2) {
    x_row = even_stride(o.x, 1);
  }
  if (!x_row) {
    return stacked_product(enc, o, out);
  }
  ProductArgs args{};
  args.x_row = *x_row;
  args.K = o.x.shape(-1);
  args.N = out.shape(-1);
  args.M = o.x.size() / args.K;
  QuantShape shape = shape_of(o, args, out);
  if (auto plan = plan_product(enc, shape)) {
    rows_product(enc, *plan, shape, o, args, out);
  } else {
    dequantized_product(enc, o, args, out);
  }
}

std::optional<QuantPlan> plan_product(StreamEncoder& enc, QuantShape& shape) {
  auto& c = config();
  shape.may_split = !c.disabled("splits");
  auto plan = tuned_plan(enc.target(), shape);
  if (c.debug_paths) {
    count(shape, plan ? &*plan : nullptr);
  }
  return plan;
}

void run_planned(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    const FewOperands& inputs,
    ProductArgs& args,
    const ProductStack* stack,
    array& out,
    const Descriptor& descriptor) {
  args.m_tiles = plan.m_tiles;
  args.n_tiles = plan.n_tiles;
  uint64_t products = plan.sorted ? plan.splits : shape.batch * plan.splits;
  uint64_t groups = products * plan.m_tiles * plan.n_tiles;
  args.groups = static_cast<uint32_t>(groups);
  Work work{.flops = 2.0 * shape.batch * shape.m * shape.n * shape.k};
  bool split = plan.splits > 1;
  array to = split
      ? enc.temporary({int(plan.splits), int(args.M), int(args.N)}, float32)
      : out;
  auto run = [&](const auto& block, const Descriptor& seen) {
    std::visit(
        [&](auto& variant) {
          enc.dispatch(
              variant, inputs, {to}, block, linear(groups), work, seen);
        },
        plan.kernel);
  };
  if (split) {
    run(SplitProductArgs{args, plan.k_split}, {});
    sum_parts(enc, to, plan.splits, out);
  } else if (stack) {
    run(StackedProductArgs{args, *stack}, descriptor);
  } else {
    run(args, descriptor);
  }
}

std::optional<int64_t> even_stride(const array& a, int n) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t stride = 0, count = 1;
  for (int d = a.ndim() - n - 1; d >= 0; --d) {
    if (a.shape(d) == 1) {
      continue;
    }
    if (count == 1) {
      stride = a.strides(d);
    } else if (a.strides(d) != count * stride || count * a.shape(d) > most) {
      return std::nullopt;
    }
    count *= a.shape(d);
  }
  return stride;
}

} // namespace vulkan

} // namespace mlx::core
