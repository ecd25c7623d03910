// Singular values and eigenvalues. Singular values of very large matrices, and
// those of complex and of unsymmetric ones, are the CPU's.
#include <algorithm>
#include <optional>

#include "backend/on_cpu.h"
#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/plan.h"
#include "ops/linalg/qr.h"

namespace mlx::core {

using namespace vulkan;

namespace {

bool is_real(const array& a) {
  return a.dtype() != complex64 && a.shape(-1) > 0 && a.shape(-2) > 0;
}

bool has_kernel(const array& a, StreamEncoder& enc) {
  uint32_t columns = std::min(a.shape(-2), a.shape(-1));
  uint32_t rows = std::max(a.shape(-2), a.shape(-1));
  auto& policy = enc.target().policy;
  return is_real(a) && columns <= policy.jacobi_columns &&
      panels_end(rows, policy);
}

// Makes the columns of the stack orthogonal.
void run_sweeps(
    const array& stack, // count x columns x lines
    const array& lengths,
    const array& scales,
    bool small,
    StreamEncoder& enc) {
  uint32_t count = stack.shape(0), rows = stack.shape(1),
           lines = stack.shape(2);
  if (small) {
    enc.dispatch(
        jacobi_variant(type_of(stack), rows, lines > rows),
        {},
        {stack, lengths, scales},
        JacobiArgs{rows, lines, count},
        linear(count),
        Work{.flops = 60.0 * rows * rows * lines * count});
    return;
  }
  array state = vulkan::zeros({stack.shape(0), MOST_SWEEPS}, uint32, enc);
  // Random matrices take 8 to 12 sweeps, those with clusters up to 25.
  auto variant = round_variant(type_of(stack), enc.caps());
  RoundArgs args{.rows = rows, .lines = lines, .count = count};
  uint32_t pairs = rows / variant.WIDE;
  double flops = 2.0 * variant.WIDE * rows * (rows + lines) * count;
  for (; args.sweep < MOST_SWEEPS; ++args.sweep) {
    for (args.round_ = 0; args.round_ < 2 * pairs - 1; ++args.round_) {
      enc.dispatch(
          variant,
          {},
          {stack, lengths, scales, state},
          args,
          linear(uint64_t(pairs) * count),
          Work{.flops = flops});
    }
  }
}

} // namespace

namespace vulkan {

// Larger matrices take rotations of pairs of blocks of columns (Hari,
// Accelerating the SVD block-Jacobi method, 2005), in rounds of disjoint pairs.
// The number of sweeps is fixed; those after the last one that rotates end at
// once. Eigenvalues are the singular values of x + c less c, 1.5 times the
// Frobenius norm, so that columns are the vectors times at least a third of c.
void run_jacobi(
    const Matrices& x,
    bool symmetric,
    const array& s,
    const Matrices* y,
    const Matrices* v,
    StreamEncoder& enc) {
  Type t = type_of(s);
  bool small = is_small(t, x.cols, y, enc.caps());
  uint32_t wide = small ? 1 : round_variant(t, enc.caps()).WIDE;
  uint32_t n = x.cols, rows = ceil_div(n, wide) * wide;
  uint32_t lines = y ? 2 * rows : rows;
  int count = static_cast<int>(x.count);
  array stack = enc.temporary({count, int(rows), int(lines)}, s.dtype());
  array scales = enc.temporary({count, 2}, s.dtype());
  array lengths = enc.temporary({count, int(rows)}, s.dtype());
  enc.dispatch(
      StartVariant{t, symmetric},
      {x.view()},
      {stack, scales},
      StartArgs{x.strides, n, rows, lines, x.count},
      linear(x.count));
  run_sweeps(stack, lengths, scales, small, enc);
  FinishArgs args{
      .ys = y ? y->strides : Strided{},
      .vs = v ? v->strides : Strided{},
      .n = n,
      .rows = rows,
      .lines = lines,
      .count = x.count};
  std::vector<array> views{s};
  for (auto* vectors : {y, v}) {
    if (vectors) {
      views.push_back(vectors->view());
    }
  }
  enc.dispatch(
      FinishVariant{t, symmetric, v != nullptr},
      {stack, lengths, scales},
      std::vector<Operand>(views.begin(), views.end()),
      args,
      linear(uint64_t(n) * x.count));
}

} // namespace vulkan

namespace {

void align_signs(const Matrices& r, const Matrices& v, StreamEncoder& enc) {
  SignsArgs args{
      .rs = r.strides, .vs = v.strides, .n = v.cols, .count = v.count};
  uint64_t items = uint64_t(v.count) * v.cols * v.cols;
  enc.dispatch(
      SignsVariant{type_of(v.of)},
      {r.view()},
      {v.view()},
      args,
      linear(items, 256));
}

// Zeros, for the triangle that factor_qr() writes.
Matrices new_r(const Matrices& a, StreamEncoder& enc) {
  int n = static_cast<int>(a.cols);
  return matrices(vulkan::zeros({int(a.count), n, n}, a.of.dtype(), enc), enc);
}

} // namespace

void SVD::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& enc = encoder(stream());
  if (!has_kernel(in, enc)) {
    return run_on_cpu(*this, inputs, outputs);
  }
  Matrices x = matrices(in, enc);
  bool wide = x.rows < x.cols;
  if (wide) { // x^T = v diag(s) u^T
    x = x.transposed();
  }
  // x is q r, and r^T = v diag(s) u^T, which takes fewer sweeps (Drmac &
  // Veselic, New fast and accurate Jacobi SVD algorithm, 2008).
  Matrices r = new_r(x, enc);
  auto q = factor_qr(x, r, enc);
  x = r.transposed();
  auto& s = outputs[compute_uv_ ? 1 : 0];
  alloc_by_rows(s);
  if (!compute_uv_) {
    run_jacobi(x, false, s, nullptr, nullptr, enc);
    return;
  }
  alloc_by_rows(outputs[0]);
  alloc_by_columns(outputs[2]);
  Matrices u = matrices(outputs[wide ? 2 : 0], enc);
  Matrices v = matrices(outputs[wide ? 0 : 2], enc);
  (wide ? u : v) = (wide ? u : v).transposed();
  Matrices y = new_matrices(x.count, x.rows, x.cols, in.dtype(), enc);
  Matrices turned = new_matrices(x.count, x.cols, x.cols, in.dtype(), enc);
  run_jacobi(x, false, s, &y, &turned, enc);
  // y = v diag(s) has orthogonal columns, some of which may be zero: QR gives a
  // whole basis.
  Matrices lengths = new_r(y, enc);
  form_q(factor_qr(y, lengths, enc), v, enc);
  align_signs(lengths, turned, enc);
  form_q(q, u, enc, &turned);
}

void Eigh::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& enc = encoder(stream());
  uint32_t n = in.shape(-1);
  auto& policy = enc.target().policy;
  bool large = n >= policy.tridiagonal_columns;
  if (!is_real(in) || (large && !merges_end(n, policy))) {
    return run_on_cpu(*this, inputs, outputs);
  }
  for (auto& out : outputs) {
    alloc_by_rows(out);
  }
  Matrices x = matrices(in, enc);
  x = uplo_ == "L" ? x : x.transposed();
  std::optional<Matrices> v;
  if (compute_eigenvectors_) {
    v = matrices(outputs[1], enc);
  }
  auto* vectors = v ? &*v : nullptr;
  if (large) {
    run_tridiagonal(x, outputs[0], vectors, enc);
  } else {
    run_jacobi(x, true, outputs[0], nullptr, vectors, enc);
  }
}

void Eig::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  run_on_cpu(*this, inputs, outputs);
}

} // namespace mlx::core
