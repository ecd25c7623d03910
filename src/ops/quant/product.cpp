#include "ops/quant/product.h"

#include "ops/layout.h"
#include "ops/path_stats.h"
#include "ops/strided.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

constexpr int max_stack_dims = 8;

struct ProductParams { // mirrors kernels/quant/operands.glsl
  int64_t x_row = 0;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t m_tiles = 0, n_tiles = 0, groups = 0;
};

struct StackParams : ProductParams {
  int64_t strides[4][max_stack_dims] = {};
  int64_t x_matrix = 0, w_matrix = 0, s_matrix = 0, b_matrix = 0;
  int32_t shape[max_stack_dims] = {};
  int32_t ndim = 0;
  uint32_t batch = 0;
};
static_assert(sizeof(StackParams) == sizeof(ProductParams) + 328);

enum Stacking { One = 0, Stack = 1, Gather = 2 };

bool matrix_contiguous(const array& a) {
  return a.strides(-1) == 1 &&
      (a.shape(-2) == 1 || a.strides(-2) == a.shape(-1));
}

array contiguous_matrix(const array& a, StreamEncoder& enc) {
  return a.flags().row_contiguous || matrix_contiguous(a)
      ? a
      : row_contiguous(a, enc);
}

// Leading dimensions, without the last `n`.
Shape leading_shape(const array& a, int n) {
  return Shape(a.shape().begin(), a.shape().end() - n);
}
Strides leading_strides(const array& a, int n) {
  return Strides(a.strides().begin(), a.strides().end() - n);
}

// The distance between neighbours of an evenly spaced stack of matrices.
std::optional<int64_t> even_stride(const array& a, int n) {
  auto shape = leading_shape(a, n);
  std::vector<Strides> strides{leading_strides(a, n)};
  collapse(shape, strides);
  if (shape.size() > 1) {
    return std::nullopt;
  }
  return shape[0] == 1 ? 0 : strides[0][0];
}

// A single row's stride says nothing: expand_dims makes it 1.
int64_t row_stride(const array& a) {
  return a.ndim() > 1 && a.shape(-2) > 1 ? a.strides(-2) : 0;
}

array even_stack(const array& a, StreamEncoder& enc) {
  return even_stride(a, 2) ? a : row_contiguous(a, enc);
}

// Operands, stacking and sizes, worked out in the order of the members.
struct Product {
  QuantOperands o;
  Stacking stacking = One;
  StackParams p;
  QuantShape shape;

  Product(
      StreamEncoder& enc,
      QuantOperands operands,
      const array& out,
      const QuantFormat& f,
      bool transpose)
      : o(std::move(operands)) {
    o.w = contiguous_matrix(o.w, enc);
    o.scales = contiguous_matrix(o.scales, enc);
    if (!f.fp()) {
      o.side = contiguous_matrix(*o.side, enc);
    } else if (o.side) {
      o.side = row_contiguous(*o.side, enc);
    }
    if (o.x.strides(-1) != 1 && o.x.shape(-1) != 1) {
      o.x = row_contiguous(o.x, enc);
    }
    shape.bits = f.bits;
    shape.group = f.group_size;
    shape.transpose = transpose;
    p.k = o.x.shape(-1);
    p.n = out.shape(-1);
    p.m = o.x.ndim() > 1 ? o.x.shape(-2) : 1;
    p.x_row = row_stride(o.x);
    if (o.rhs) {
      gather(enc, f);
    } else if (o.w.ndim() == 2 && even_stride(o.x, 1)) {
      p.m = o.x.size() / p.k;
      p.x_row = *even_stride(o.x, 1);
    } else if (o.x.ndim() > 2) {
      stack(f);
    }
    shape.m = p.m;
    shape.n = p.n;
    shape.k = p.k;
    shape.batch = stacking == One ? 1 : p.batch;
    shape.x_aligned = x_bits() % 16 == 0;
    shape.aligned = shape.x_aligned && w_bits(f) % 16 == 0;
  }

 private:
  void dims(const Shape& shape, std::vector<Strides>& strides) {
    auto s = shape;
    collapse(s, strides);
    if (s.size() > max_stack_dims) {
      throw std::invalid_argument(
          "[quantized_matmul] The Vulkan backend takes at most 8 batch "
          "dimensions that do not collapse; got " +
          std::to_string(s.size()) + ". Make the operands contiguous first.");
    }
    p.batch = static_cast<uint32_t>(elements(s));
    p.ndim = static_cast<int32_t>(s.size());
    for (int d = 0; d < p.ndim; ++d) {
      p.shape[d] = s[d];
      for (size_t i = 0; i < strides.size(); ++i) {
        p.strides[i][d] = s[d] == 1 ? 0 : strides[i][d];
      }
    }
  }

  void stack(const QuantFormat& f) {
    stacking = Stack;
    bool shared = o.w.ndim() == 2;
    auto zero = Strides(o.x.ndim() - 2, 0);
    auto of = [&](const array& a) {
      return shared ? zero : leading_strides(a, 2);
    };
    std::vector<Strides> strides{
        leading_strides(o.x, 2),
        of(o.w),
        of(o.scales),
        f.fp() ? zero : of(*o.side)};
    dims(leading_shape(o.x, 2), strides);
  }

  void gather(StreamEncoder& enc, const QuantFormat& f) {
    stacking = Gather;
    o.x = even_stack(o.x, enc);
    o.w = even_stack(o.w, enc);
    o.scales = even_stack(o.scales, enc);
    p.x_row = row_stride(o.x);
    p.x_matrix = *even_stride(o.x, 2);
    p.w_matrix = *even_stride(o.w, 2);
    p.s_matrix = *even_stride(o.scales, 2);
    if (!f.fp()) {
      o.side = even_stack(*o.side, enc);
      p.b_matrix = *even_stride(*o.side, 2);
    } else if (o.side) {
      p.b_matrix = o.side->size() > 1 ? 1 : 0;
    }
    shape.sorted = o.sorted && p.m == 1;
    shape.matrices =
        o.w.size() / (size_t(o.w.shape(-1)) * std::max(o.w.shape(-2), 1));
    if (shape.sorted) {
      o.lhs = row_contiguous(*o.lhs, enc);
      o.rhs = row_contiguous(*o.rhs, enc);
    }
    std::vector<Strides> strides{o.lhs->strides(), o.rhs->strides()};
    dims(o.lhs->shape(), strides);
  }

  // Whether all rows of x, and of codes, start at multiples of a power of
  // two bytes, is whether these are.
  uint64_t x_bits() const {
    auto item = static_cast<int64_t>(o.x.itemsize());
    uint64_t bits = o.x.offset() | p.x_row * item | p.x_matrix * item;
    for (int d = 0; d < p.ndim && stacking == Stack; ++d) {
      bits |= p.strides[0][d] * item;
    }
    return bits;
  }
  uint64_t w_bits(const QuantFormat& f) const {
    uint64_t bits = o.w.offset() | p.w_matrix * 4;
    for (int d = 0; d < p.ndim && stacking == Stack; ++d) {
      bits |= p.strides[1][d] * 4;
    }
    // Rows of 16-element groups may be 8 bytes apart.
    return bits | uint64_t(o.w.shape(-1)) * 4 * (f.group_size == 16 ? 2 : 0);
  }
};

void count(
    const QuantShape& s,
    const QuantPlan& plan,
    const QuantFormat& f,
    Type type) {
  auto text = [](uint64_t n) { return std::to_string(n); };
  std::string shape = std::string(name_of(type)) + " m=" + text(s.m) +
      " n=" + text(s.n) + " k=" + text(s.k) + " batch=" + text(s.batch) +
      " bits=" + text(f.bits) + " group=" + text(f.group_size) +
      (f.fp() ? " fp" : " affine") + (s.transpose ? " w^T" : " w") +
      (s.sorted ? " sorted" : "");
  std::string tile = " " + text(plan.bm) + "x" + text(plan.bn);
  switch (plan.path) {
    case QuantPlan::Path::Matvec:
      return count_path(
          "quantized products", shape, "qmv rows=" + text(plan.rows), plan.why);
    case QuantPlan::Path::Vecmat:
      return count_path(
          "quantized products", shape, "qvm rows=" + text(plan.rows), plan.why);
    case QuantPlan::Path::Tiled:
      return count_path("quantized products", shape, "qmm" + tile, plan.why);
    case QuantPlan::Path::Coopmat:
      return count_path(
          "quantized products", shape, "qmm_coopmat" + tile, plan.why);
  }
}

} // namespace

void quantized_product(
    StreamEncoder& enc,
    QuantOperands operands,
    array& out,
    const QuantFormat& f,
    bool transpose) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  Product product(enc, std::move(operands), out, f, transpose);
  auto& o = product.o;
  auto& p = product.p;
  auto& caps = enc.caps();
  Type type = type_of(out);
  auto plan = plan_quant(
      {caps.subgroup_size,
       caps.core_count,
       caps.software(),
       caps.coopmat(type),
       caps.few_registers()},
      product.shape);
  if (config().qmm_stats) {
    count(product.shape, plan, f, type);
  }
  bool sorted = product.shape.sorted &&
      (plan.path == QuantPlan::Path::Tiled ||
       plan.path == QuantPlan::Path::Coopmat);
  if (sorted) {
    p.m = p.batch;
  }
  p.m_tiles = plan.m_tiles;
  p.n_tiles = plan.n_tiles;
  uint64_t groups =
      (sorted ? 1 : product.shape.batch) * uint64_t(p.m_tiles) * p.n_tiles;
  if (groups > UINT32_MAX) {
    throw std::invalid_argument(
        "[quantized_matmul] The product is too large for one dispatch: " +
        std::to_string(groups) + " workgroups. Split the batch.");
  }
  p.groups = static_cast<uint32_t>(groups);

  const Kernel* k = nullptr;
  bool global = f.fp() && o.side.has_value();
  switch (plan.path) {
    case QuantPlan::Path::Matvec:
      k = &enc.kernel(
          "quant/qmv",
          {{"T", type},
           {"BITS", f.bits},
           {"GROUP", f.group_size},
           {"FP", f.fp()},
           {"GLOBAL", global},
           {"BATCH", int(product.stacking)},
           {"ROWS", plan.rows},
           {"OUTS", plan.outs},
           {"CHUNK", plan.chunk},
           {"WG", plan.workgroup},
           {"BLOCK", plan.block},
           {"WIDE", plan.wide},
           {"VEC", plan.vec}});
      break;
    case QuantPlan::Path::Vecmat:
      k = &enc.kernel(
          "quant/qvm",
          {{"T", type},
           {"BITS", f.bits},
           {"GROUP", f.group_size},
           {"FP", f.fp()},
           {"GLOBAL", global},
           {"BATCH", int(product.stacking)},
           {"ROWS", plan.rows},
           {"TX", plan.tx},
           {"TY", plan.ty}});
      break;
    case QuantPlan::Path::Tiled:
      k = &enc.kernel(
          "quant/qmm",
          {{"T", type},
           {"BITS", f.bits},
           {"GROUP", f.group_size},
           {"FP", f.fp()},
           {"GLOBAL", global},
           {"BATCH", int(product.stacking)},
           {"TRANSPOSE", transpose},
           {"SORTED", sorted},
           {"BM", plan.bm},
           {"BN", plan.bn},
           {"TM", plan.tm},
           {"TN", plan.tn}});
      break;
    case QuantPlan::Path::Coopmat:
      k = &enc.coopmat_kernel(
          "quant/qmm_coopmat",
          type,
          {{"BITS", f.bits},
           {"GROUP", f.group_size},
           {"FP", f.fp()},
           {"GLOBAL", global},
           {"BATCH", int(product.stacking)},
           {"TRANSPOSE", transpose},
           {"SORTED", sorted},
           {"BM", plan.bm},
           {"BN", plan.bn},
           {"WM", plan.wm},
           {"WN", plan.wn}});
      break;
  }

  std::vector<Operand> inputs{o.x, o.w, o.scales};
  if (o.side) {
    inputs.emplace_back(*o.side);
  }
  if (o.rhs) {
    inputs.emplace_back(*o.lhs);
    inputs.emplace_back(*o.rhs);
  }
  Operand output(out);
  enc.dispatch_bytes(
      *k,
      inputs,
      {&output, 1},
      &p,
      product.stacking == One ? sizeof(ProductParams) : sizeof(StackParams),
      linear(groups));
}

} // namespace mlx::core::vulkan
