#include "ops/gemm/gemm.h"

#include <sstream>

#include "mlx/backend/common/utils.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/utils.h"

#include "ops/gemm/params.h"
#include "vk/caps.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

struct BatchLayout {
  Shape shape;
  Strides a, b, c; // of lhs and rhs instead of a and b when gathering
};

Shape batch_shape(const array& x) {
  return Shape(x.shape().begin(), x.shape().end() - 2);
}

Strides batch_strides(const array& x) {
  return Strides(x.strides().begin(), x.strides().end() - 2);
}

MatrixStrides matrix_strides(const array& x) {
  return {x.strides(-2), x.strides(-1)};
}

// Every matrix of x starts at a multiple of 16 bytes.
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

BatchLayout collapse(const GemmCall& call, const array& out) {
  std::vector<Strides> strides;
  if (call.lhs) {
    strides = {call.lhs->strides(), call.rhs->strides()};
  } else {
    strides = {batch_strides(call.a), batch_strides(call.b)};
  }
  strides.push_back(
      call.c ? batch_strides(*call.c) : Strides(out.ndim() - 2, 0));
  auto [shape, collapsed] = collapse_contiguous_dims(batch_shape(out), strides);
  return {shape, collapsed[0], collapsed[1], collapsed[2]};
}

void fill(int64_t (&to)[batch_dims], const Strides& from) {
  std::copy(from.begin(), from.end(), to);
}

void fill(int32_t (&to)[batch_dims], const Shape& from) {
  std::copy(from.begin(), from.end(), to);
}

// The batch part of the parameters, and its two defines.
struct BatchArgs {
  int nd = 0, gather = 0;
  BatchParams one{};
  BatchDims dims{};
  GatherDims gathered{};

  void add_to(ParamBytes& bytes) const {
    bytes.add(one);
    if (gather) {
      bytes.add(gathered);
    } else if (nd) {
      bytes.add(dims);
    }
  }
};

BatchArgs batch_args(const GemmCall& call, const BatchLayout& batch) {
  BatchArgs args;
  if (call.lhs) {
    auto [a_shape, a_strides] =
        collapse_contiguous_dims(batch_shape(call.a), batch_strides(call.a));
    auto [b_shape, b_strides] =
        collapse_contiguous_dims(batch_shape(call.b), batch_strides(call.b));
    auto& g = args.gathered;
    args.gather = 1;
    g.ndim = batch.shape.size();
    g.a_ndim = a_shape.size();
    g.b_ndim = b_shape.size();
    fill(g.shape, batch.shape);
    fill(g.a_shape, a_shape);
    fill(g.b_shape, b_shape);
    fill(g.lhs, batch.a);
    fill(g.rhs, batch.b);
    fill(g.a, a_strides);
    fill(g.b, b_strides);
  } else if (batch.shape.size() > 1) {
    args.nd = 1;
    args.dims.ndim = batch.shape.size();
    fill(args.dims.shape, batch.shape);
    fill(args.dims.a, batch.a);
    fill(args.dims.b, batch.b);
    fill(args.dims.c, batch.c);
  } else if (batch.shape.size() == 1) {
    args.one = {batch.a[0], batch.b[0], batch.c[0]};
  }
  return args;
}

// The same with w for a and the vectors for b.
void swap_operands(BatchArgs& args) {
  std::swap(args.one.a, args.one.b);
  std::swap(args.dims.a, args.dims.b);
  std::swap(args.gathered.a_ndim, args.gathered.b_ndim);
  std::swap(args.gathered.a_shape, args.gathered.b_shape);
  std::swap(args.gathered.lhs, args.gathered.rhs);
  std::swap(args.gathered.a, args.gathered.b);
}

template <typename Index>
void add_tile_params(
    ParamBytes& bytes,
    const GemmPlan& plan,
    const GemmProblem& p,
    float alpha,
    float beta) {
  GemmParams<Index> params{
      p.m,
      p.n,
      p.k,
      (p.m + plan.bm - 1) / plan.bm,
      (p.n + plan.bn - 1) / plan.bn,
      plan.splits,
      plan.k_split,
      static_cast<uint32_t>(p.batches),
      static_cast<Index>(p.a.row),
      static_cast<Index>(p.a.col),
      static_cast<Index>(p.b.row),
      static_cast<Index>(p.b.col),
      static_cast<Index>(p.c.row),
      static_cast<Index>(p.c.col),
      alpha,
      beta};
  bytes.add(params);
}

template <typename Index>
void add_thin_params(
    ParamBytes& bytes,
    const GemmPlan& plan,
    const GemmProblem& p,
    float alpha,
    float beta) {
  GemvParams<Index> params{};
  params.rows = plan.rows;
  params.vectors = plan.vectors;
  params.k = p.k;
  params.row_groups = (plan.rows + plan.group_rows - 1) / plan.group_rows;
  params.splits = plan.splits;
  params.k_split = plan.k_split;
  params.batches = static_cast<uint32_t>(p.batches);
  MatrixStrides y{static_cast<int64_t>(p.n), 1};
  auto set = [](Index& row, Index& col, MatrixStrides s, bool swapped) {
    row = static_cast<Index>(swapped ? s.col : s.row);
    col = static_cast<Index>(swapped ? s.row : s.col);
  };
  set(params.w_row, params.w_k, plan.swapped ? p.b : p.a, plan.swapped);
  set(params.x_k, params.x_vec, plan.swapped ? p.a : p.b, plan.swapped);
  set(params.y_row, params.y_vec, y, plan.swapped);
  set(params.c_row, params.c_vec, p.c, plan.swapped);
  params.alpha = alpha;
  params.beta = beta;
  bytes.add(params);
}

const Kernel& tile_kernel(
    StreamEncoder& enc,
    const GemmPlan& plan,
    Type type,
    const BatchArgs& batch,
    bool axpby) {
  if (plan.kind == GemmKind::Coopmat) {
    return enc.coopmat_kernel(
        "gemm/gemm_coopmat",
        type,
        {{"BM", plan.bm},
         {"BN", plan.bn},
         {"WM", plan.tm},
         {"WN", plan.tn},
         {"A_T", int(plan.a_t)},
         {"B_T", int(plan.b_t)},
         {"VA", int(plan.va)},
         {"VB", int(plan.vb)},
         {"AXPBY", int(axpby)},
         {"ND", batch.nd},
         {"GATHER", batch.gather},
         {"SPLIT", int(plan.splits > 1)},
         {"BIG", int(plan.big)}});
  }
  return enc.kernel(
      "gemm/gemm",
      {{"T", type},
       {"BM", plan.bm},
       {"BN", plan.bn},
       {"BK", plan.bk},
       {"TM", plan.tm},
       {"TN", plan.tn},
       {"A_T", int(plan.a_t)},
       {"B_T", int(plan.b_t)},
       {"VA", int(plan.va)},
       {"VB", int(plan.vb)},
       {"AXPBY", int(axpby)},
       {"ND", batch.nd},
       {"GATHER", batch.gather},
       {"SPLIT", int(plan.splits > 1)},
       {"BIG", int(plan.big)},
       {"PREFETCH", int(plan.prefetch)}});
}

const Kernel& thin_kernel(
    StreamEncoder& enc,
    const GemmPlan& plan,
    Type type,
    const BatchArgs& batch,
    bool axpby) {
  if (plan.kind == GemmKind::Dot) {
    return enc.kernel(
        "gemm/gemv",
        {{"T", type},
         {"WG", plan.workgroup},
         {"ROWS", plan.group_rows},
         {"NV", plan.nv},
         {"VW", int(plan.vw)},
         {"VX", int(plan.vx)},
         {"AXPBY", int(axpby)},
         {"ND", batch.nd},
         {"GATHER", batch.gather},
         {"SPLIT", int(plan.splits > 1)},
         {"BIG", int(plan.big)}});
  }
  return enc.kernel(
      "gemm/gemv_axpy",
      {{"T", type},
       {"WG", plan.workgroup},
       {"LANES", plan.lanes},
       {"NV", plan.nv},
       {"VW", int(plan.vw)},
       {"AXPBY", int(axpby)},
       {"ND", batch.nd},
       {"GATHER", batch.gather},
       {"SPLIT", int(plan.splits > 1)},
       {"BIG", int(plan.big)}});
}

// Rows of several batch items that follow each other evenly are the rows of
// one taller matrix when b is the same for all.
void fold_batch_into_rows(GemmProblem& p, BatchLayout& batch, bool axpby) {
  if (batch.shape.size() != 1 || batch.b[0] != 0) {
    return;
  }
  int64_t m = p.m;
  bool even = batch.a[0] == m * p.a.row || (m == 1 && batch.a[0] > 0);
  bool c_even = !axpby || batch.c[0] == m * p.c.row || m == 1;
  uint64_t rows = static_cast<uint64_t>(m) * batch.shape[0];
  if (!even || !c_even || rows > INT32_MAX) {
    return;
  }
  if (m == 1) {
    p.a.row = batch.a[0];
    p.c.row = batch.c[0];
  }
  p.m = static_cast<uint32_t>(rows);
  p.batches = 1;
  batch = {};
}

} // namespace

GemmDevice gemm_device(StreamEncoder& enc) {
  const Caps& caps = enc.caps();
  return {
      caps.core_count,
      caps.software(),
      caps.coopmat(Type::f16),
      caps.coopmat(Type::bf16),
      !config().disabled("splits")};
}

void run_gemm(StreamEncoder& enc, const GemmCall& call, array& out) {
  BatchLayout batch = collapse(call, out);
  if (batch.shape.size() > batch_dims ||
      (call.lhs && std::max(call.a.ndim(), call.b.ndim()) > batch_dims + 2)) {
    // Contiguous batch dimensions collapse; this many strided ones are rare.
    array a = contiguous_copy_gpu(call.a, enc.stream());
    array b = contiguous_copy_gpu(call.b, enc.stream());
    enc.add_temporary(a);
    enc.add_temporary(b);
    array c = call.c ? contiguous_copy_gpu(*call.c, enc.stream()) : a;
    array lhs = call.lhs ? contiguous_copy_gpu(*call.lhs, enc.stream()) : a;
    array rhs = call.rhs ? contiguous_copy_gpu(*call.rhs, enc.stream()) : a;
    for (const array& copy : {c, lhs, rhs}) {
      enc.add_temporary(copy);
    }
    run_gemm(
        enc,
        {call.name,
         a,
         b,
         call.c ? &c : nullptr,
         call.alpha,
         call.beta,
         call.lhs ? &lhs : nullptr,
         call.rhs ? &rhs : nullptr},
        out);
    return;
  }

  bool axpby = call.c != nullptr || call.alpha != 1;
  if (call.alpha != 1 && !call.c) {
    throw std::invalid_argument(
        std::string("[") + call.name + "] alpha needs a c operand.");
  }
  GemmProblem p;
  p.type = type_of(out);
  p.m = call.a.shape(-2);
  p.n = call.b.shape(-1);
  p.k = call.a.shape(-1);
  p.batches = out.size() / (static_cast<uint64_t>(p.m) * p.n);
  p.a = matrix_strides(call.a);
  p.b = matrix_strides(call.b);
  p.axpby = axpby;
  if (call.c) {
    p.c = matrix_strides(*call.c);
  }
  if (!call.lhs) {
    fold_batch_into_rows(p, batch, axpby);
  }
  if (call.lhs) {
    p.a_aligned = aligned(call.a, batch_shape(call.a), batch_strides(call.a));
    p.b_aligned = aligned(call.b, batch_shape(call.b), batch_strides(call.b));
  } else {
    p.a_aligned = aligned(call.a, batch.shape, batch.a);
    p.b_aligned = aligned(call.b, batch.shape, batch.b);
  }

  GemmPlan plan = plan_gemm(gemm_device(enc), p);
  uint64_t groups = plan.groups(p);
  if (groups > UINT32_MAX) {
    std::ostringstream msg;
    msg << "[" << call.name << "] The product of " << call.a.shape() << " and "
        << call.b.shape() << " needs " << groups
        << " workgroups; the Vulkan backend starts at most 2^32 - 1. Split the "
           "batch.";
    throw std::invalid_argument(msg.str());
  }

  bool split = plan.splits > 1;
  bool thin = plan.kind == GemmKind::Dot || plan.kind == GemmKind::Axpy;
  bool finish = axpby && !split; // else the sum kernel applies alpha, beta, c
  BatchArgs batches = batch_args(call, batch);
  array target = split ? enc.temporary(
                             {static_cast<int>(plan.splits),
                              static_cast<int>(p.batches),
                              static_cast<int>(p.m),
                              static_cast<int>(p.n)},
                             p.type == Type::c64 ? complex64 : float32)
                       : out;

  ParamBytes bytes;
  auto add = [&](auto index) {
    using Index = decltype(index);
    if (thin) {
      add_thin_params<Index>(bytes, plan, p, call.alpha, call.beta);
    } else {
      add_tile_params<Index>(bytes, plan, p, call.alpha, call.beta);
    }
  };
  if (plan.big) {
    add(int64_t{});
  } else {
    add(int32_t{});
  }
  BatchArgs kernel_batches = batches;
  bool swapped = thin && plan.swapped;
  if (swapped) {
    swap_operands(kernel_batches);
  }
  kernel_batches.add_to(bytes);

  std::vector<Operand> reads{
      swapped ? call.b : call.a, swapped ? call.a : call.b};
  if (finish) {
    reads.push_back(*call.c);
  }
  if (call.lhs) {
    reads.push_back(swapped ? *call.rhs : *call.lhs);
    reads.push_back(swapped ? *call.lhs : *call.rhs);
  }
  const Kernel& kernel = thin
      ? thin_kernel(enc, plan, p.type, kernel_batches, finish)
      : tile_kernel(enc, plan, p.type, kernel_batches, finish);
  Operand written[] = {target};
  enc.dispatch_bytes(
      kernel, reads, written, bytes.data(), bytes.size(), linear(groups));
  if (!split) {
    return;
  }

  // The batch part of the sum concerns c only.
  int nd = axpby ? batches.nd : 0;
  const Kernel& sum = enc.kernel(
      "gemm/splitk_sum",
      {{"T", p.type}, {"AXPBY", int(axpby)}, {"ND", nd}, {"GATHER", 0}});
  ParamBytes sum_bytes;
  sum_bytes.add(SplitSumParams{
      p.m,
      p.n,
      plan.splits,
      static_cast<uint32_t>(p.batches),
      p.c.row,
      p.c.col,
      call.alpha,
      call.beta});
  sum_bytes.add(batches.one);
  if (nd) {
    sum_bytes.add(batches.dims);
  }
  std::vector<Operand> sum_reads{target};
  if (axpby) {
    sum_reads.push_back(*call.c);
  }
  Operand sum_written[] = {out};
  enc.dispatch_bytes(
      sum,
      sum_reads,
      sum_written,
      sum_bytes.data(),
      sum_bytes.size(),
      linear(out.size(), 128));
}

} // namespace mlx::core::vulkan
