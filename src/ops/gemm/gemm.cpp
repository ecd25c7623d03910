#include "ops/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "kernels/gemm/splitk_sum.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/utils.h"
#include "ops/gemm/plan.h"
#include "ops/layout.h"
#include "ops/tuned/tuned.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

struct BatchLayout {
  Shape shape;
  std::array<Strides, 3> strides; // of a, b, c; of lhs, rhs when gathering
  Axes a, b; // when gathering: the matrices that the indices select
};

// Argument blocks in the order of BATCH's values.
using AnyBatch = std::variant<BatchEven, BatchNest, BatchGather>;

Strides batch_strides(const array& x) {
  return leading(x.strides(), 2);
}

MatrixStrides matrix_strides(const array& x) {
  return {x.strides(-2), x.strides(-1)};
}

Axes collapsed_batch(const array& x) {
  return collapsed(leading(x.shape(), 2), batch_strides(x));
}

BatchLayout batch_layout(const GemmCall& call, const array& out) {
  BatchLayout batch{.shape = leading(out.shape(), 2)};
  if (call.lhs) {
    batch.a = collapsed_batch(call.a);
    batch.b = collapsed_batch(call.b);
    batch.strides = {call.lhs->strides(), call.rhs->strides()};
  } else {
    batch.strides = {batch_strides(call.a), batch_strides(call.b)};
  }
  batch.strides[2] =
      call.c ? batch_strides(*call.c) : Strides(out.ndim() - 2, 0);
  collapse(batch.shape, batch.strides);
  return batch;
}

// Whether every matrix of x starts at a multiple of 16 bytes.
bool aligned(const array& x, const Shape& shape, const Strides& strides) {
  if (x.offset() % 16 != 0) {
    return false;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && strides[d] * static_cast<int64_t>(x.itemsize()) % 16) {
      return false;
    }
  }
  return true;
}

AnyBatch batch_args(const BatchLayout& batch, bool gather) {
  auto& [a, b, c] = batch.strides;
  int ndim = batch.shape.size();
  if (gather) {
    BatchGather args{};
    args.ndim = ndim;
    args.a_ndim = batch.a.shape.size();
    args.b_ndim = batch.b.shape.size();
    args.a_count = elements(batch.a.shape);
    args.b_count = elements(batch.b.shape);
    assign(args.shape, batch.shape);
    assign(args.a_shape, batch.a.shape);
    assign(args.b_shape, batch.b.shape);
    assign(args.lhs, a);
    assign(args.rhs, b);
    assign(args.a, batch.a.strides);
    assign(args.b, batch.b.strides);
    return args;
  }
  if (ndim > 1) {
    BatchNest args{};
    args.ndim = ndim;
    assign(args.shape, batch.shape);
    assign(args.a, a);
    assign(args.b, b);
    assign(args.c, c);
    return args;
  }
  return BatchEven{a[0], b[0], c[0]};
}

// The same product, transposed: a and b exchange places.
void exchange(BatchEven& batch) {
  std::swap(batch.a, batch.b);
}
void exchange(BatchNest& batch) {
  std::swap(batch.a, batch.b);
}
void exchange(BatchGather& batch) {
  std::swap(batch.a_ndim, batch.b_ndim);
  std::swap(batch.a_count, batch.b_count);
  std::swap(batch.a_shape, batch.b_shape);
  std::swap(batch.lhs, batch.rhs);
  std::swap(batch.a, batch.b);
}

// If b is the same for all batch items, evenly spaced rows of a form one taller
// matrix.
void fold_batch_into_rows(GemmProblem& p, BatchLayout& batch) {
  auto& [a, b, c] = batch.strides;
  if (batch.shape.size() != 1 || b[0] != 0) {
    return;
  }
  int64_t m = p.m;
  bool even = a[0] == m * p.a.row || (m == 1 && a[0] > 0);
  bool c_even = !p.axpby || c[0] == m * p.c.row || m == 1;
  uint64_t rows = static_cast<uint64_t>(m) * batch.shape[0];
  if (!even || !c_even || rows > INT32_MAX) {
    return;
  }
  if (m == 1) {
    p.a.row = a[0];
    p.c.row = c[0];
  }
  p.m = static_cast<uint32_t>(rows);
  p.batches = 1;
  batch.shape = {1};
  batch.strides = {Strides{0}, Strides{0}, Strides{0}};
}

GemmProblem
problem_of(const GemmCall& call, BatchLayout& batch, const array& out) {
  GemmProblem p;
  p.type = type_of(out);
  p.m = call.a.shape(-2);
  p.n = call.b.shape(-1);
  p.k = call.a.shape(-1);
  p.batches = out.size() / (static_cast<uint64_t>(p.m) * p.n);
  p.a = matrix_strides(call.a);
  p.b = matrix_strides(call.b);
  p.axpby = call.c != nullptr;
  if (call.c) {
    p.c = matrix_strides(*call.c);
  }
  if (call.lhs) {
    p.a_aligned = aligned(call.a, batch.a.shape, batch.a.strides);
    p.b_aligned = aligned(call.b, batch.b.shape, batch.b.strides);
  } else {
    fold_batch_into_rows(p, batch);
    p.a_aligned = aligned(call.a, batch.shape, batch.strides[0]);
    p.b_aligned = aligned(call.b, batch.shape, batch.strides[1]);
  }
  p.may_split = !config().disabled("splits");
  return p;
}

// Contiguous copies collapse to few batch dimensions; such calls are rare.
void run_on_copies(StreamEncoder& enc, const GemmCall& call, array& out) {
  std::vector<array> copies;
  copies.reserve(5);
  auto copy = [&](const array* x) -> const array* {
    if (!x) {
      return nullptr;
    }
    copies.push_back(contiguous_copy_gpu(*x, enc.stream()));
    enc.add_temporary(copies.back());
    return &copies.back();
  };
  run_gemm(
      enc,
      {*copy(&call.a),
       *copy(&call.b),
       copy(call.c),
       call.alpha,
       call.beta,
       copy(call.lhs),
       copy(call.rhs)},
      out);
}

template <typename Index, typename Batch>
GemmArgs<Index, Batch>
gemm_args(const GemmPlan& plan, const GemmCall& call, const Batch& batch) {
  const GemmProblem& p = plan.problem;
  GemmArgs<Index, Batch> args{
      .M = p.m,
      .N = p.n,
      .K = p.k,
      .m_tiles = plan.tiles_m,
      .n_tiles = plan.tiles_n,
      .splits = plan.splits,
      .k_split = plan.k_split,
      .batches = static_cast<uint32_t>(p.batches),
      .transposed = plan.transposed,
      .alpha = call.alpha,
      .beta = call.beta,
      .batch = batch};
  auto set = [](Index& row, Index& col, const MatrixStrides& s) {
    row = static_cast<Index>(s.row);
    col = static_cast<Index>(s.col);
  };
  set(args.a_row, args.a_col, p.a);
  set(args.b_row, args.b_col, p.b);
  set(args.c_row, args.c_col, p.c);
  return args;
}

// Calls f with a value of the type that offsets in a matrix have.
template <typename F>
void with_index(const GemmPlan& plan, F f) {
  if (plan.large) {
    f(int64_t{});
  } else {
    f(int32_t{});
  }
}

// Runs the product, or computes the parts of a split one.
void run_product(
    StreamEncoder& enc,
    const GemmCall& call,
    const GemmPlan& plan,
    AnyBatch& batch,
    const array& target) {
  const array* pairs[] = {&call.a, &call.b, call.lhs, call.rhs};
  if (plan.transposed) {
    std::swap(pairs[0], pairs[1]);
    std::swap(pairs[2], pairs[3]);
    std::visit([](auto& b) { exchange(b); }, batch);
  }
  std::vector<Operand> reads;
  reads.reserve(4);
  reads.emplace_back(*pairs[0]);
  reads.emplace_back(*pairs[1]);
  if (call.c && plan.splits == 1) {
    reads.emplace_back(*call.c);
  }
  if (call.lhs) {
    reads.emplace_back(*pairs[2]);
    reads.emplace_back(*pairs[3]);
  }
  Work work{.flops = plan.flops()};
  Grid grid = linear(plan.groups());
  with_index(plan, [&]<typename Index>(Index) {
    std::visit(
        [&](auto& variant, auto& b) {
          auto args = gemm_args<Index>(plan, call, b);
          enc.dispatch(variant, reads, {target}, args, grid, work);
        },
        plan.variant,
        batch);
  });
}

// Sums the parts of a split product; only c's batch matters.
template <typename Batch>
void sum_parts(
    StreamEncoder& enc,
    const GemmCall& call,
    const GemmProblem& p,
    uint32_t splits,
    const Batch& batch,
    const array& parts,
    array& out) {
  SplitSumVariant variant{.T = p.type, .AXPBY = p.axpby, .BATCH = p.batch};
  std::vector<Operand> reads{parts};
  if (call.c) {
    reads.emplace_back(*call.c);
  }
  SplitSumArgs<Batch> args{
      .c_row = p.c.row,
      .c_col = p.c.col,
      .m = p.m,
      .n = p.n,
      .splits = splits,
      .batches = static_cast<uint32_t>(p.batches),
      .alpha = call.alpha,
      .beta = call.beta,
      .batch = batch};
  enc.dispatch(variant, reads, {out}, args, linear(out.size(), 128));
}

void run_split(
    StreamEncoder& enc,
    const GemmCall& call,
    GemmProblem p,
    const GemmPlan& plan,
    AnyBatch& batch,
    array& out) {
  array parts = enc.temporary(
      {static_cast<int>(plan.splits),
       static_cast<int>(p.batches),
       static_cast<int>(p.m),
       static_cast<int>(p.n)},
      size_of(p.type) == 8 ? out.dtype() : float32);
  run_product(enc, call, plan, batch, parts);
  if (p.axpby && p.batch == BATCH_NEST) {
    auto& nest = std::get<BatchNest>(batch);
    sum_parts(enc, call, p, plan.splits, nest, parts, out);
  } else {
    p.batch = BATCH_EVEN;
    auto* even = std::get_if<BatchEven>(&batch);
    sum_parts(
        enc, call, p, plan.splits, even ? *even : BatchEven{}, parts, out);
  }
}

} // namespace

void sum_parts(
    StreamEncoder& enc,
    const array& parts,
    uint32_t splits,
    array& out) {
  GemmProblem p{.type = type_of(out)};
  p.n = static_cast<uint32_t>(out.shape(-1));
  p.m = static_cast<uint32_t>(out.size() / p.n);
  sum_parts(enc, {parts, parts}, p, splits, BatchEven{}, parts, out);
}

void run_gemm(StreamEncoder& enc, const GemmCall& call, array& out) {
  BatchLayout layout = batch_layout(call, out);
  size_t ndim = std::max(
      {layout.shape.size(), layout.a.shape.size(), layout.b.shape.size()});
  if (ndim > BATCH_DIMS) {
    return run_on_copies(enc, call, out);
  }
  GemmProblem p = problem_of(call, layout, out);
  AnyBatch batch = batch_args(layout, call.lhs != nullptr);
  p.batch = batch.index();
  GemmPlan plan = tuned_plan(enc.target(), p);
  if (plan.splits > 1) {
    run_split(enc, call, p, plan, batch, out);
  } else {
    run_product(enc, call, plan, batch, out);
  }
}

array sorted_tiles(StreamEncoder& enc, const array& rhs, uint32_t height) {
  auto rows = static_cast<uint32_t>(rhs.size());
  array tiles = enc.temporary({static_cast<int>(rows) + 2}, uint32);
  enc.dispatch(
      plan_sorted_tiles(enc.target(), rows),
      {rhs},
      {tiles},
      SortedTilesArgs{rows, height},
      Grid{});
  return tiles;
}

bool run_sorted_gemm(StreamEncoder& enc, const GemmCall& call, array& out) {
  const array &a = call.a, &b = call.b;
  uint64_t rows = out.size() / out.shape(-1);
  // Rows of a and matrices of b form one stack each.
  if (a.shape(-2) != 1 || !a.flags().row_contiguous || b.ndim() != 3 ||
      rows > INT32_MAX - 2) {
    return false;
  }
  GemmProblem p{.type = type_of(out), .batch = BATCH_SORTED};
  p.m = static_cast<uint32_t>(rows);
  p.n = static_cast<uint32_t>(out.shape(-1));
  p.k = static_cast<uint32_t>(a.shape(-1));
  p.a = {a.shape(-1), 1};
  p.b = matrix_strides(b);
  p.a_aligned = a.offset() % 16 == 0;
  int64_t b_pieces = b.strides(0) / 8;
  p.b_aligned = b.offset() % 16 == 0 && b.strides(0) % 8 == 0 &&
      std::llabs(b_pieces) <= INT32_MAX;
  BatchSorted batch{
      .b_pieces = static_cast<int32_t>(b_pieces),
      .a_count = static_cast<uint32_t>(a.size() / p.k),
      .b_count = static_cast<uint32_t>(b.shape(0))};
  auto plan = plan_sorted_gemm(enc.target(), p, batch.b_count);
  if (!plan) {
    return false;
  }
  auto& variant = std::get<CoopmatVariant>(plan->variant);
  array lhs = row_contiguous(*call.lhs, enc);
  array rhs = row_contiguous(*call.rhs, enc);
  array tiles = sorted_tiles(enc, rhs, variant.BM);
  Work work{.flops = plan->flops()};
  with_index(*plan, [&]<typename Index>(Index) {
    auto args = gemm_args<Index>(*plan, call, batch);
    Grid grid = linear(plan->groups());
    enc.dispatch(variant, {a, b, lhs, rhs, tiles}, {out}, args, grid, work);
  });
  return true;
}

} // namespace mlx::core::vulkan
