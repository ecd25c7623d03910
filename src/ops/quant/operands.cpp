#include "ops/quant/operands.h"

#include "ops/layout.h"

namespace mlx::core::vulkan {

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

// Leading dimensions, without the last `n`.
Shape leading_shape(const array& a, int n) {
  return Shape(a.shape().begin(), a.shape().end() - n);
}
Strides leading_strides(const array& a, int n) {
  return Strides(a.strides().begin(), a.strides().end() - n);
}

// The distance between adjacent matrices of an evenly spaced stack.
std::optional<int64_t> even_stride(const array& a, int n) {
  if (a.flags().row_contiguous && a.size() > 0 &&
      a.size() <= std::numeric_limits<int32_t>::max()) {
    int64_t stride = 1;
    for (int d = 1; d <= n; ++d) {
      stride *= a.shape(-d);
    }
    return stride == int64_t(a.size()) ? 0 : stride;
  }
  auto shape = leading_shape(a, n);
  std::array<Strides, 1> strides{leading_strides(a, n)};
  collapse(shape, strides);
  if (shape.size() > 1) {
    return std::nullopt;
  }
  return shape[0] == 1 ? 0 : strides[0][0];
}

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
  return elements(leading_shape(a, 2));
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

void set_stack(ProductStack& p, const QuantOperands& o, bool bias) {
  Strides zero(o.x.ndim() - 2, 0);
  auto of = [&](const array& a) {
    return o.w.ndim() == 2 ? zero : leading_strides(a, 2);
  };
  set_batch<4>(
      p,
      leading_shape(o.x, 2),
      {leading_strides(o.x, 2),
       of(o.w),
       of(o.scales),
       bias ? of(*o.side) : zero});
}

void set_gather(
    StreamEncoder& enc,
    AddressedProduct& product,
    QuantOperands& o,
    bool bias) {
  auto& [p, s] = product;
  p.stack.x_matrix = make_even(o.x, enc);
  p.stack.w_matrix = make_even(o.w, enc);
  p.stack.scale_matrix = make_even(o.scales, enc);
  p.x_row = row_stride(o.x);
  if (bias) {
    p.stack.side_matrix = make_even(*o.side, enc);
  } else if (o.side) {
    p.stack.side_matrix = o.side->size() > 1 ? 1 : 0;
  }
  s.sorted = o.sorted && p.M == 1;
  s.matrices = matrices_of(o.w);
  p.stack.x_matrices = matrices_of(o.x);
  p.stack.w_matrices = s.matrices;
  if (s.sorted) {
    o.lhs = row_contiguous(*o.lhs, enc);
    o.rhs = row_contiguous(*o.rhs, enc);
  }
  set_batch<2>(p.stack, o.lhs->shape(), {o.lhs->strides(), o.rhs->strides()});
}

// Whether all rows of an operand start at multiples of 16 bytes. Rows of codes
// always follow one another without gaps.
bool aligned16(
    const AddressedProduct& product,
    const array& a,
    int operand,
    int64_t row,
    int64_t matrix) {
  auto item = static_cast<int64_t>(a.itemsize());
  auto& stack = product.args.stack;
  uint64_t bits = a.offset() | row * item | matrix * item;
  if (product.shape.common.BATCH == BATCH_STACK) {
    for (int d = 0; d < stack.ndim; ++d) {
      bits |= stack.strides[operand][d] * item;
    }
  }
  return bits % 16 == 0;
}

} // namespace

AddressedProduct address(
    StreamEncoder& enc,
    QuantOperands& o,
    const array& out,
    const QuantFormat& f,
    bool transpose) {
  make_matrix_contiguous(o.w, enc);
  make_matrix_contiguous(o.scales, enc);
  if (f.bias) {
    make_matrix_contiguous(*o.side, enc);
  } else if (o.side) {
    o.side = row_contiguous(*o.side, enc);
  }
  if (o.x.strides(-1) != 1 && o.x.shape(-1) != 1) {
    o.x = row_contiguous(o.x, enc);
  }
  AddressedProduct product{
      {}, {{{type_of(out), f, o.side.has_value()}, BATCH_ONE}}};
  auto& [p, s] = product;
  p.K = o.x.shape(-1);
  p.N = out.shape(-1);
  p.M = o.x.ndim() > 1 ? o.x.shape(-2) : 1;
  p.x_row = row_stride(o.x);
  std::optional<int64_t> rows;
  if (o.rhs) {
    s.common.BATCH = BATCH_GATHER;
    set_gather(enc, product, o, f.bias);
  } else if (o.w.ndim() == 2 && (rows = even_stride(o.x, 1))) {
    p.M = o.x.size() / p.K;
    p.x_row = *rows;
  } else if (o.x.ndim() > 2) {
    s.common.BATCH = BATCH_STACK;
    set_stack(p.stack, o, f.bias);
  }
  s.m = p.M;
  s.n = p.N;
  s.k = p.K;
  s.batch = s.common.BATCH == BATCH_ONE ? 1 : p.stack.batch;
  s.transpose = transpose;
  s.x_aligned = aligned16(product, o.x, 0, p.x_row, p.stack.x_matrix);
  s.aligned = s.x_aligned && aligned16(product, o.w, 1, 0, p.stack.w_matrix);
  s.sides_aligned = f.bias &&
      aligned16(product, o.scales, 2, 0, p.stack.scale_matrix) &&
      aligned16(product, *o.side, 3, 0, p.stack.side_matrix);
  return product;
}

} // namespace mlx::core::vulkan
