// Cholesky, LU and inverses.
#include <limits>
#include <sstream>
#include <stdexcept>

#include "mlx/primitives.h"
#include "mlx/utils.h"
#include "ops/layout.h"
#include "ops/linalg/blocks.h"
#include "ops/linalg/plan.h"

namespace mlx::core {

using namespace vulkan;

void Cholesky::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  fill_with_zeros(out, enc);
  Matrices a = matrices(inputs[0], enc), y = matrices(out, enc);
  if (upper_) { // which reads the upper triangle
    a = a.transposed();
    y = y.transposed();
  }
  CholeskyVariant variant{type_of(out)};
  // Rounding errors of what is left of a semidefinite matrix exceed those of
  // its factor (Higham, 10.3.2).
  double epsilon = out.dtype() == float64
      ? std::numeric_limits<double>::epsilon()
      : std::numeric_limits<float>::epsilon();
  uint32_t n = a.rows, wide = (n < 4096 ? 4 : 8) * linalg_block;
  Rooms rooms({a.count, n, wide});
  for (uint32_t begin = 0; begin < n; begin += wide) {
    uint32_t columns = std::min(wide, n - begin);
    // The columns, less what earlier ones explain.
    Matrices left = a.part(begin, begin, n - begin, columns);
    auto reduce = [&](uint32_t from, uint32_t at) {
      auto known = y.part(at, from, left.rows, at - from);
      auto above = known.part(0, 0, left.cols, at - from).transposed();
      left = reduced(left, known, above, rooms, enc);
    };
    if (begin > 0) {
      reduce(0, begin);
    }
    for (uint32_t at = begin; at < begin + columns; at += linalg_block) {
      uint32_t w = std::min(linalg_block, left.cols), rows = left.rows;
      auto from = a.part(at, at, rows, rows);
      auto to = y.part(at, at, rows, w);
      uint32_t each = fills(rows - w, a.count, enc.target()) ? LINALG_GROUP
                                                             : LINALG_GROUP / 4;
      uint32_t groups = std::max(ceil_div(rows - w, each), 1u);
      CholeskyArgs args{
          .xs = left.strides,
          .as = from.strides,
          .ys = to.strides,
          .rows = rows,
          .width = w,
          .each = each,
          .tolerance = float(4 * (at + w) * epsilon),
          .groups = groups,
          .count = a.count};
      enc.dispatch(
          variant,
          {left.part(0, 0, rows, w).view(), from.view()},
          {to.view()},
          args,
          linear(uint64_t(groups) * a.count),
          Work{.flops = double(rows) * w * w * a.count});
      if (left.cols > w) {
        left = left.part(w, w, rows - w, left.cols - w);
        reduce(at, at + w);
      }
    }
  }
}

void LUF::eval_gpu(
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto& enc = encoder(stream());
  auto& a = inputs[0];
  if (a.size() == 0) {
    std::ostringstream text;
    text << "[linalg::lu] Matrices of shape " << a.shape()
         << " have no columns to factor.";
    throw std::invalid_argument(text.str());
  }
  auto& lu = outputs[0];
  alloc_by_columns(lu);
  alloc_by_rows(outputs[1]);
  alloc_by_rows(outputs[2]);
  factor_lu(matrices(a, enc), matrices(lu, enc), outputs[1], outputs[2], enc);
}

// By forward and back substitution with the factors.
void Inverse::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& enc = encoder(stream());
  if (tri_) {
    fill_with_zeros(out, enc);
    Matrices t = matrices(inputs[0], enc), x = matrices(out, enc);
    if (upper_) {
      t = t.transposed();
      x = x.transposed();
    }
    solve_triangle({.t = t}, nullptr, nullptr, x, enc);
    return;
  }
  alloc_by_rows(out);
  Matrices x = matrices(out, enc);
  Matrices lu = new_matrices(x.count, x.rows, x.cols, out.dtype(), enc);
  int count = static_cast<int>(x.count), n = static_cast<int>(x.rows);
  array pivots = enc.temporary({count, n}, uint32);
  array places = enc.temporary({count, n}, uint32);
  factor_lu(matrices(inputs[0], enc), lu, pivots, places, enc);
  Matrices y = matrices(enc.temporary({count, n, n}, out.dtype()), enc);
  solve_triangle({.t = lu, .unit = true}, nullptr, &places, y, enc);
  solve_triangle({.t = lu, .upper = true}, &y, nullptr, x, enc);
}

} // namespace mlx::core
