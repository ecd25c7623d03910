// Products of stacks of matrices, and products by index (GatherQMM).
#include "ops/attention/quantized.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"

namespace mlx::core {

namespace vulkan {

namespace {

// The distance between matrices, after a copy if they are not evenly spaced.
int64_t make_even(array& a, StreamEncoder& enc) {
  auto stride = even_stride(a, 2);
  if (!stride) {
    a = row_contiguous(a, enc);
    stride = even_stride(a, 2);
  }
  return *stride;
}

uint32_t matrices_of(const array& a) {
  return elements(leading(a.shape(), 2));
}

// The stride of a single row has no meaning: expand_dims makes it 1.
int64_t row_stride(const array& a) {
  return a.ndim() > 1 && a.shape(-2) > 1 ? a.strides(-2) : 0;
}

template <size_t N>
void set_batch(ProductStack& p, Shape shape, std::array<Strides, N> strides) {
  collapse(shape, strides);
  if (shape.size() > STACK_DIMS) {
    throw std::invalid_argument(
        "[quantized_matmul] The Vulkan backend takes at most " +
        std::to_string(STACK_DIMS) +
        " batch dimensions that do not collapse; got " +
        std::to_string(shape.size()) + ". Make the operands contiguous first.");
  }
  p.batch = static_cast<uint32_t>(elements(shape));
  p.ndim = static_cast<int32_t>(shape.size());
  for (int d = 0; d < p.ndim; ++d) {
    p.shape[d] = shape[d];
    for (size_t i = 0; i < N; ++i) {
      p.strides[i][d] = shape[d] == 1 ? 0 : strides[i][d];
    }
  }
}

void set_stack(ProductStack& p, const QuantOperands& o) {
  Strides zero(o.x.ndim() - 2, 0);
  auto of = [&](const array& a) {
    return o.w.ndim() == 2 ? zero : leading(a.strides(), 2);
  };
  set_batch<4>(
      p,
      leading(o.x.shape(), 2),
      {leading(o.x.strides(), 2),
       of(o.w),
       of(o.scales),
       o.format.bias ? of(*o.side) : zero});
}

void set_gather(
    StreamEncoder& enc,
    StackedProductArgs& p,
    QuantShape& s,
    QuantOperands& o) {
  p.stack.x_matrix = make_even(o.x, enc);
  p.stack.w_matrix = make_even(o.w, enc);
  p.stack.scale_matrix = make_even(o.scales, enc);
  p.x_row = row_stride(o.x);
  if (o.format.bias) {
    p.stack.side_matrix = make_even(*o.side, enc);
  } else if (o.side) {
    p.stack.side_matrix = o.side->size() > 1 ? 1 : 0;
  }
  s.sorted = o.sorted && p.M == 1;
  p.stack.x_matrices = matrices_of(o.x);
  p.stack.w_matrices = matrices_of(o.w);
  s.matrices = o.experts ? o.experts : p.stack.w_matrices;
  if (s.sorted) {
    o.lhs = row_contiguous(*o.lhs, enc);
    o.rhs = row_contiguous(*o.rhs, enc);
  }
  set_batch<2>(p.stack, o.lhs->shape(), {o.lhs->strides(), o.rhs->strides()});
}

// All strides of an operand between matrices, combined bit by bit.
int64_t matrix_strides(const ProductStack& p, int batch, int operand) {
  const int64_t even[] = {
      p.x_matrix, p.w_matrix, p.scale_matrix, p.side_matrix};
  int64_t bits = even[operand];
  for (int d = 0; batch == BATCH_STACK && d < p.ndim; ++d) {
    bits |= p.strides[operand][d];
  }
  return bits;
}

// Addresses, strides and sizes; `args` lacks tiles and groups. Replaces
// operands by copies if necessary; `enc` keeps these alive.
QuantShape address(
    StreamEncoder& enc,
    QuantOperands& o,
    const array& out,
    StackedProductArgs& p) {
  QuantShape s{
      {{type_of(out), o.format, o.side.has_value()},
       o.rhs ? BATCH_GATHER : BATCH_STACK}};
  p.K = o.x.shape(-1);
  p.N = out.shape(-1);
  p.M = o.x.shape(-2);
  p.x_row = row_stride(o.x);
  if (o.rhs) {
    set_gather(enc, p, s, o);
  } else {
    set_stack(p.stack, o);
  }
  s.m = p.M;
  s.n = p.N;
  s.k = p.K;
  s.batch = p.stack.batch;
  s.transpose = o.transpose;
  auto aligned = [&](const array& a, int operand, int64_t row = 0) {
    return aligned16(a, row | matrix_strides(p.stack, s.common.BATCH, operand));
  };
  s.x_aligned = aligned(o.x, 0, p.x_row) && p.K % 8 == 0;
  s.aligned = s.x_aligned && aligned(o.w, 1);
  s.sides_aligned =
      o.format.bias && aligned(o.scales, 2) && aligned(*o.side, 3);
  return s;
}

} // namespace

void stacked_product(StreamEncoder& enc, QuantOperands& o, array& out) {
  StackedProductArgs args{};
  QuantShape shape = address(enc, o, out, args);
  if (!o.transpose && o.last_use &&
      attend_quantized(enc, o, args, shape, out)) {
    return;
  }
  QuantPlan plan = *plan_product(enc, shape);
  auto& stack = args.stack;
  std::optional<array> tiles;
  if (plan.sorted) {
    pack_rows(enc, plan, shape, o.x, stack.x_matrices, stack.x_matrix);
    args.M = stack.batch;
    tiles = sorted_tiles(enc, *o.rhs, plan.tile_height);
  }
  FewOperands inputs{o.x, o.w, o.scales};
  for (auto* a : {&o.side, &o.lhs, &o.rhs, &tiles}) {
    if (*a) {
      inputs.add(**a);
    }
  }
  Descriptor descriptor;
  auto* v = std::get_if<QmvVariant>(&plan.kernel);
  if (v && o.rhs && shape.m == 1) {
    descriptor = GatheredRecord{*v};
  } else if (plan.splits == 1 && may_be_scores(shape)) {
    descriptor =
        ScoresRecord{shape.common.T, o.format.bits, o.format.group, o.last_use};
    enc.raw().stay_open(most_attention_operations);
  }
  run_planned(enc, plan, shape, inputs, args, &stack, out, descriptor);
}

} // namespace vulkan

void GatherQMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  size_t n = inputs.size();
  vulkan::QuantOperands o{
      .x = inputs[0],
      .w = inputs[1],
      .scales = inputs[2],
      .format = vulkan::format_of(mode_, bits_, group_size_),
      .transpose = transpose_,
      .lhs = inputs[n - 2],
      .rhs = inputs[n - 1],
      .sorted = right_sorted_};
  if (n == 6) {
    o.side = inputs[3];
  }
  vulkan::quantized_product(vulkan::encoder(stream()), std::move(o), out);
}

} // namespace mlx::core
