// Singular values and eigenvalues of small matrices; larger and complex ones,
// and those of unsymmetric matrices, are the CPU's.
#include <algorithm>
#include <optional>

#include "backend/on_cpu.h"
#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/linalg/plan.h"
#include "ops/linalg/qr.h"

namespace mlx::core {

using namespace vulkan;

namespace {

bool has_kernel(const array& a, StreamEncoder& enc) {
  uint32_t columns = std::min(a.shape(-2), a.shape(-1));
  uint32_t rows = std::max(a.shape(-2), a.shape(-1));
  return a.dtype() == float32 && columns > 0 &&
      columns <= jacobi_rows(enc.caps()) &&
      panels_end(rows, enc.target().policy);
}

// Writes s, and if they are given the vectors y (not of symmetric matrices) and
// v; kernels/linalg/linalg.h.
void run_jacobi(
    const Matrices& x,
    bool symmetric,
    const array& s,
    const Matrices* y,
    const Matrices* v,
    StreamEncoder& enc) {
  uint32_t most = x.rows <= 32 ? 32 : 64;
  JacobiArgs args{
      .xs = x.strides,
      .ys = y ? y->strides : Strided{},
      .vs = v ? v->strides : Strided{},
      .rows = x.rows,
      .cols = x.cols,
      .count = x.count};
  std::vector<array> views{s};
  if (y) {
    views.push_back(y->view());
  }
  if (v) {
    views.push_back(v->view());
    int held = most > 32 ? int(most) : 1;
    views.push_back(enc.temporary({int(x.count), held, held}, float32));
  }
  std::vector<Operand> writes(views.begin(), views.end());
  double work = 10.0 * 6 * x.rows * x.cols * x.cols; // about 10 sweeps
  enc.dispatch(
      JacobiVariant{most, symmetric, v != nullptr},
      {x.view()},
      writes,
      args,
      linear(x.count),
      Work{.flops = work * x.count});
}

void align_signs(const Matrices& r, const Matrices& v, StreamEncoder& enc) {
  SignsArgs args{
      .rs = r.strides, .vs = v.strides, .n = v.cols, .count = v.count};
  uint64_t items = uint64_t(v.count) * v.cols * v.cols;
  enc.dispatch(
      SignsVariant{}, {r.view()}, {v.view()}, args, linear(items, 256));
}

// Zeros, for the triangle that factor_qr() writes.
Matrices new_r(const Matrices& a, StreamEncoder& enc) {
  int n = static_cast<int>(a.cols);
  array r({int(a.count), n, n}, float32, nullptr, {});
  fill_with_zeros(r, enc);
  enc.add_temporary(r);
  return matrices(r, enc);
}

// Row-major if `by_rows`, else column-major.
void alloc_matrices(array& a, bool by_rows) {
  if (by_rows || a.size() <= 1) {
    a.set_data(allocator::malloc(a.nbytes()));
    return;
  }
  auto strides = a.strides();
  std::swap(strides[a.ndim() - 1], strides[a.ndim() - 2]);
  auto flags = a.flags();
  flags.row_contiguous = false;
  flags.col_contiguous = a.ndim() == 2;
  a.set_data(allocator::malloc(a.nbytes()), a.size(), strides, flags);
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
  // A tall matrix is that of its triangle, times a q.
  std::vector<Reflectors> q;
  if (x.rows > jacobi_rows(enc.caps())) {
    Matrices r = new_r(x, enc);
    q = factor_qr(x, r, enc);
    for (auto& block : q) {
      block.from = 0; // others come after it
    }
    x = r;
  }
  auto& s = outputs[compute_uv_ ? 1 : 0];
  s.set_data(allocator::malloc(s.nbytes()));
  if (!compute_uv_) {
    run_jacobi(x, false, s, nullptr, nullptr, enc);
    return;
  }
  auto& left = outputs[wide ? 2 : 0];
  auto& right = outputs[wide ? 0 : 2];
  alloc_matrices(left, !wide);
  alloc_matrices(right, wide);
  Matrices u = matrices(left, enc), v = matrices(right, enc);
  u = wide ? u.transposed() : u;
  v = wide ? v : v.transposed();
  Matrices y = new_matrices(x.count, x.rows, x.cols, enc);
  run_jacobi(x, false, s, &y, &v, enc);
  // y = u diag(s) has orthogonal columns, some of which may be zero: QR gives a
  // whole basis.
  Matrices r = new_r(y, enc);
  auto more = factor_qr(y, r, enc);
  q.insert(q.end(), more.begin(), more.end());
  align_signs(r, v, enc);
  form_q(q, u, enc);
}

void Eigh::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& enc = encoder(stream());
  if (!has_kernel(in, enc)) {
    return run_on_cpu(*this, inputs, outputs);
  }
  for (auto& out : outputs) {
    out.set_data(allocator::malloc(out.nbytes()));
  }
  Matrices x = matrices(in, enc);
  x = uplo_ == "L" ? x : x.transposed();
  std::optional<Matrices> v;
  if (compute_eigenvectors_) {
    v = matrices(outputs[1], enc);
  }
  run_jacobi(x, true, outputs[0], nullptr, v ? &*v : nullptr, enc);
}

void Eig::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  run_on_cpu(*this, inputs, outputs);
}

} // namespace mlx::core
