// Eigenvalues. Those of complex and of unsymmetric matrices are the CPU's.
#include <optional>

#include "backend/on_cpu.h"
#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/plan.h"

namespace mlx::core {

using namespace vulkan;

namespace {

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

void Eigh::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& enc = encoder(stream());
  uint32_t n = in.shape(-1);
  auto& policy = enc.target().policy;
  bool large = n >= policy.tridiagonal_columns;
  if (in.dtype() == complex64 || n == 0 || (large && !merges_end(n, policy))) {
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
