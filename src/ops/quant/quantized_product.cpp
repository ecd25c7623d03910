#include "ops/quant/quantized_product.h"

#include "ops/path_stats.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

void count(const QuantShape& s, const QuantPlan& plan, const QuantFormat& f) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string shape = std::string(name_of(s.common.T)) + " m=" + text(s.m) +
      " n=" + text(s.n) + " k=" + text(s.k) + " batch=" + text(s.batch) +
      " bits=" + text(f.bits) + " group=" + text(f.group) +
      (f.bias ? " affine" : " fp") + (s.transpose ? " w^T" : " w") +
      (s.sorted ? " sorted" : "");
  auto path = [&](const auto& v) {
    std::string name(v.file.substr(v.file.find('/') + 1));
    if constexpr (requires { v.ROWS; }) {
      return name + " rows=" + text(v.ROWS);
    } else {
      return name + " " + text(v.BM) + "x" + text(v.BN);
    }
  };
  count_path(
      "quantized products", shape, std::visit(path, plan.kernel), plan.why);
}

uint32_t workgroups(const QuantPlan& plan, uint64_t batch) {
  uint64_t n = batch * plan.m_tiles * plan.n_tiles;
  if (n > UINT32_MAX) {
    throw std::invalid_argument(
        "[quantized_matmul] The product is too large for one dispatch: " +
        std::to_string(n) + " workgroups. Split the batch.");
  }
  return static_cast<uint32_t>(n);
}

} // namespace

void quantized_product(
    StreamEncoder& enc,
    QuantOperands o,
    array& out,
    const QuantFormat& f,
    bool transpose) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto [args, shape] = address(enc, o, out, f, transpose);
  QuantPlan plan = plan_quant(enc.caps(), shape);
  if (config().qmm_stats) {
    count(shape, plan, f);
  }
  if (plan.sorted) {
    args.M = args.stack.batch;
  }
  args.m_tiles = plan.m_tiles;
  args.n_tiles = plan.n_tiles;
  args.groups = workgroups(plan, plan.sorted ? 1 : shape.batch);

  std::vector<Operand> inputs;
  inputs.reserve(6);
  for (auto* a : {&o.x, &o.w, &o.scales}) {
    inputs.emplace_back(*a);
  }
  for (auto* a : {&o.side, &o.lhs, &o.rhs}) {
    if (*a) {
      inputs.emplace_back(**a);
    }
  }
  auto& k = std::visit(
      [&](auto& v) -> const Kernel& { return enc.kernel(v); }, plan.kernel);
  Grid grid = linear(args.groups);
  if (shape.common.BATCH == BATCH_ONE) {
    enc.dispatch(k, inputs, {out}, static_cast<ProductArgs&>(args), grid);
  } else {
    enc.dispatch(k, inputs, {out}, args, grid);
  }
}

} // namespace mlx::core::vulkan
