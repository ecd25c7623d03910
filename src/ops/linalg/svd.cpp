// Singular values. Those of complex matrices are the CPU's.
#include <algorithm>
#include <optional>

#include "backend/on_cpu.h"
#include "mlx/primitives.h"
#include "ops/gemm/gemm.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/plan.h"
#include "ops/linalg/qr.h"

namespace mlx::core {

using namespace vulkan;

namespace {

// True if singular values are a larger matrix's eigenvalues (run_symmetric()).
bool by_eigenvalues(uint32_t columns, const Policy& policy) {
  return columns >= 6 * policy.tridiagonal_columns;
}

bool has_kernel(const array& a, bool vectors, StreamEncoder& enc) {
  uint32_t columns = std::min(a.shape(-2), a.shape(-1));
  uint32_t rows = std::max(a.shape(-2), a.shape(-1));
  auto& policy = enc.target().policy;
  return a.dtype() != complex64 && columns > 0 &&
      (!by_eigenvalues(columns, policy) || merges_end(2 * columns, policy)) &&
      has_qr(rows, columns, vectors, enc.caps());
}

// v = y, which has orthogonal columns, with columns of length 1. Some of y may
// be zero: QR gives a whole basis.
void normalize(const Matrices& y, const Matrices& v, StreamEncoder& enc) {
  Matrices r = zero_matrices(y.count, y.cols, y.cols, y.of.dtype(), enc);
  form_q(factor_qr(y, r, enc), v, enc);
  SignsArgs args{
      .rs = r.strides, .vs = v.strides, .n = v.cols, .count = v.count};
  enc.dispatch(
      SignsVariant{type_of(v.of)},
      {r.view()},
      {v.view()},
      args,
      linear(uint64_t(v.count) * v.cols * v.cols, 256));
}

// r v = u diag(s), as the eigenvalues of [0 r^T; r 0] are s and -s, and its
// vectors v above u (Golub & Van Loan, 8.6.1). Writes v and u, if they are
// given.
void run_symmetric(
    const Matrices& r,
    const array& s,
    const Matrices* v,
    const Matrices* u,
    StreamEncoder& enc) {
  uint32_t n = r.cols, twice = 2 * n, count = r.count;
  auto type = s.dtype();
  Matrices h = zero_matrices(count, twice, twice, type, enc);
  copy_to(r, h.part(n, 0, n, n), enc);
  array values = enc.temporary({int(count), int(twice)}, type);
  std::optional<Matrices> z;
  if (v) {
    z = new_matrices(count, twice, twice, type, enc).transposed();
  }
  run_tridiagonal(h, values, z ? &*z : nullptr, enc);
  // Half the difference of a pair, so that it is neither negative nor out of
  // order.
  array one(1.0f, type);
  enc.add_temporary(one);
  Matrices last{values, twice - 1, count, n, 1, {twice, -1, 1}};
  Matrices first{values, 0, count, n, 1, {twice, 1, 1}};
  array to = Matrices{s, 0, count, n, 1, {n, 1, 1}}.view(), from = last.view();
  run_gemm(
      enc,
      {.a = first.view(),
       .b = Matrices{one, 0, count, 1, 1, {}}.view(),
       .c = &from,
       .alpha = -0.5,
       .beta = 0.5},
      to);
  if (v) {
    auto descending = [](const Matrices& columns) {
      return columns.transposed().rows_reversed().transposed();
    };
    normalize(descending(z->part(0, n, n, n)), *v, enc);
    normalize(descending(z->part(n, n, n, n)), *u, enc);
  }
}

} // namespace

void SVD::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& enc = encoder(stream());
  if (!has_kernel(in, compute_uv_, enc)) {
    return run_on_cpu(*this, inputs, outputs);
  }
  Matrices x = matrices(in, enc);
  bool wide = x.rows < x.cols;
  if (wide) { // x^T = v diag(s) u^T
    x = x.transposed();
  }
  auto type = in.dtype();
  Matrices r = zero_matrices(x.count, x.cols, x.cols, type, enc);
  auto q = factor_qr(x, r, enc, compute_uv_);
  bool many = by_eigenvalues(r.cols, enc.target().policy);
  auto& s = outputs[compute_uv_ ? 1 : 0];
  alloc_by_rows(s);
  if (!compute_uv_) {
    many ? run_symmetric(r, s, nullptr, nullptr, enc)
         : run_jacobi(r.transposed(), false, s, nullptr, nullptr, enc);
    return;
  }
  alloc_by_rows(outputs[0]);
  alloc_by_columns(outputs[2]);
  Matrices u = matrices(outputs[wide ? 2 : 0], enc);
  Matrices v = matrices(outputs[wide ? 0 : 2], enc);
  (wide ? u : v) = (wide ? u : v).transposed();
  Matrices turned =
      new_matrices(r.count, r.cols, r.cols, type, enc).transposed();
  if (many) {
    run_symmetric(r, s, &v, &turned, enc);
  } else {
    // r^T = v diag(s) u^T, which takes fewer sweeps than r (Drmac & Veselic,
    // New fast and accurate Jacobi SVD algorithm, 2008).
    Matrices y = new_matrices(r.count, r.rows, r.cols, type, enc);
    run_jacobi(r.transposed(), false, s, &y, &turned, enc);
    normalize(y, v, enc);
  }
  form_q(q, u, enc, &turned);
}

} // namespace mlx::core
