#include "ops/quant/quantized_product.h"

#include "kernels/quant/half_rows.h"
#include "ops/attention/quantized.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/sorted.h"
#include "ops/layout.h"
#include "ops/path_stats.h"
#include "ops/tuned/tuned.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// `plan`: null if the weights are dequantized first.
void count(const QuantShape& s, const QuantPlan* plan, const QuantFormat& f) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string shape = std::string(name_of(s.common.T)) + " m=" + text(s.m) +
      " n=" + text(s.n) + " k=" + text(s.k) + " batch=" + text(s.batch) +
      " bits=" + text(f.bits) + " group=" + text(f.group) +
      (f.bias ? " affine" : " fp") + (s.transpose ? " w^T" : " w") +
      (s.sorted ? " sorted" : "");
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

// The rows of `a`, `pitch` items apart, as a matrix.
array as_matrix(const array& a, int rows, int cols, int64_t pitch) {
  array m({rows, cols}, a.dtype(), nullptr, {});
  bool contiguous = pitch == cols;
  array::Flags flags{contiguous, contiguous, false};
  m.copy_shared_buffer(a, {pitch, 1}, flags, a.data_size());
  return m;
}

void dense_product(
    StreamEncoder& enc,
    const QuantOperands& o,
    const StackedProductArgs& args,
    array& out,
    const QuantFormat& f,
    bool transpose) {
  int m = args.M, n = args.N, k = args.K;
  Shape shape = transpose ? Shape{n, k} : Shape{k, n};
  array w = enc.scratch(std::move(shape), out.dtype());
  std::optional<array> side;
  if (o.side) {
    side = row_contiguous(*o.side, enc);
  }
  array codes = row_contiguous(o.w, enc);
  dequantize(enc, codes, row_contiguous(o.scales, enc), side, w, f);
  if (transpose) {
    array t({k, n}, w.dtype(), nullptr, {});
    t.copy_shared_buffer(w, {1, k}, {true, false, true}, w.data_size());
    w = t;
  }
  array x = as_matrix(o.x, m, k, args.x_row);
  array y = as_matrix(out, m, n, n);
  run_gemm(enc, {"quantized_matmul", x, w}, y);
}

// Packs x for qmm_dot.
array packed_rows(
    StreamEncoder& enc,
    const array& x,
    const ProductArgs& args,
    const QmmDotVariant& v,
    bool vec) {
  uint32_t words = packed_row_words(args.K);
  array packed = enc.scratch({int(args.M), int(words)}, uint32);
  PackRowsArgs pack{
      .x_row = args.x_row,
      .K = args.K,
      .row_words = words,
      .blocks = args.M * (args.K / DOT_BLOCK)};
  auto& k = enc.kernel(PackRowsVariant{v.T, v.even_odd(), vec});
  Grid grid = linear(uint64_t(pack.blocks) * PACK_LANES, PACK_WG);
  enc.dispatch(k, {x}, {packed}, pack, grid);
  return packed;
}

// Packs x for qmm_sorted with f16 matrices: its rows, or the rows of its stack.
void pack_halves(
    StreamEncoder& enc,
    QuantOperands& o,
    StackedProductArgs& args,
    const QmmSortedVariant& v) {
  uint32_t rows = v.SORTED ? args.stack.x_matrices : args.M;
  uint32_t pitch = half_row_pitch(args.K, v.GROUP);
  array packed = enc.scratch({int(rows), int(pitch)}, o.x.dtype());
  HalfRowsArgs pack{
      .x_row = v.SORTED ? args.stack.x_matrix : args.x_row,
      .K = args.K,
      .pitch = pitch,
      .groups = rows * (args.K / v.GROUP)};
  auto& k = enc.kernel(HalfRowsVariant{v.T, v.GROUP});
  Grid grid = linear(uint64_t(pack.groups) * HALF_ROWS_LANES, HALF_ROWS_WG);
  enc.dispatch(k, {o.x}, {packed}, pack, grid);
  o.x = packed;
  args.x_row = args.stack.x_matrix = pitch;
}

// Packs x if the planned kernel needs that.
void pack(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const QuantShape& shape,
    QuantOperands& o,
    StackedProductArgs& args) {
  if (auto* dot = std::get_if<QmmDotVariant>(&plan.kernel)) {
    o.x = packed_rows(enc, o.x, args, *dot, shape.x_aligned);
    args.x_row = o.x.shape(1);
  }
  auto* codes = std::get_if<QmmSortedVariant>(&plan.kernel);
  if (codes && codes->units.halves) {
    pack_halves(enc, o, args, *codes);
  }
}

// Runs a product whose parts of k are summed in a second dispatch.
void run_split(
    StreamEncoder& enc,
    const QuantPlan& plan,
    const Kernel& kernel,
    const OperandList& inputs,
    const ProductArgs& args,
    const Work& work,
    array& out) {
  auto side = [](uint32_t n) { return static_cast<int>(n); };
  array parts =
      enc.temporary({side(plan.splits), side(args.M), side(args.N)}, float32);
  SplitProductArgs split{args, plan.k_split};
  enc.dispatch(kernel, inputs, {parts}, split, linear(args.groups), work);
  sum_parts(enc, parts, plan.splits, out);
}

} // namespace

void quantized_product(
    StreamEncoder& enc,
    QuantOperands&& o,
    array& out,
    const QuantFormat& f,
    bool transpose) {
  out.set_data(allocator::malloc(out.nbytes()));
  auto [args, shape] = address(enc, o, out, f, transpose);
  if (!transpose && o.last_use && attend_quantized(enc, o, args, shape, out)) {
    return;
  }
  auto& c = config();
  shape.may_split = !c.disabled("splits");
  const Caps& caps = tuned(enc.caps(), shape);
  QuantPlan plan =
      plan_quant(caps, shape, c.test.skinny_rows, c.int8_activations);
  if (!std::holds_alternative<QmmDotVariant>(plan.kernel) &&
      dequantizes_first(caps, shape, c.test.dequantize_rows)) {
    if (c.debug_paths) {
      count(shape, nullptr, f);
    }
    return dense_product(enc, o, args, out, f, transpose);
  }
  if (c.debug_paths) {
    count(shape, &plan, f);
  }
  pack(enc, plan, shape, o, args);
  if (plan.sorted) {
    args.M = args.stack.batch;
  }
  args.m_tiles = plan.m_tiles;
  args.n_tiles = plan.n_tiles;
  uint64_t products = plan.sorted ? plan.splits : shape.batch * plan.splits;
  uint64_t groups = products * plan.m_tiles * plan.n_tiles;
  check_groups("quantized_matmul", o.x, o.w, groups);
  args.groups = static_cast<uint32_t>(groups);

  std::optional<array> tiles;
  if (plan.sorted) {
    tiles = sorted_tiles(enc, *o.rhs, plan.tile_height);
  }
  FewOperands inputs{o.x, o.w, o.scales};
  for (auto* a : {&o.side, &o.lhs, &o.rhs, &tiles}) {
    if (*a) {
      inputs.add(**a);
    }
  }
  Work work{.flops = 2.0 * shape.batch * shape.m * shape.n * shape.k};
  auto& k = std::visit(
      [&](auto& v) -> const Kernel& { return enc.kernel(v); }, plan.kernel);
  if (plan.splits > 1) {
    return run_split(enc, plan, k, inputs, args, work, out);
  }
  Grid grid = linear(args.groups);
  if (shape.common.BATCH == BATCH_ONE) {
    Descriptor what;
    if (auto* v = std::get_if<QmvVariant>(&plan.kernel)) {
      what = ProductRecord{*v};
    } else if (auto* v = std::get_if<QmmFragmentsVariant>(&plan.kernel)) {
      what = ProductRecord{*v};
    }
    enc.dispatch(
        k, inputs, {out}, static_cast<ProductArgs&>(args), grid, work, what);
  } else {
    Descriptor what;
    auto* v = std::get_if<QmvVariant>(&plan.kernel);
    if (v && shape.common.BATCH == BATCH_GATHER && shape.m == 1) {
      what = GatheredRecord{*v};
    } else if (may_be_scores(shape)) {
      what = ScoresRecord{shape.common.T, f.bits, f.group, o.last_use};
      enc.raw().stay_open(most_attention_operations);
    }
    enc.dispatch(k, inputs, {out}, args, grid, work, what);
  }
}

} // namespace mlx::core::vulkan
