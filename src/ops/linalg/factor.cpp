// Cholesky, LU and inverses.
#include <limits>
#include <sstream>
#include <stdexcept>

#include "backend/on_cpu.h"
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
  uint32_t n = a.rows, begin = 0, wide = 8 * linalg_block;
  // `left` has the columns from `begin` on, less what earlier ones explain. One
  // product for `wide` columns fills the device.
  Matrices left = a;
  auto less = [&](const Matrices& x, uint32_t from, uint32_t at) {
    auto known = y.part(at, from, x.rows, at - from);
    auto above = known.part(0, 0, x.cols, at - from).transposed();
    return reduced(x, known, above, enc);
  };
  for (uint32_t at = 0; at < n; at += linalg_block) {
    uint32_t w = block_width(at, n), rows = n - at;
    if (at == begin + wide) {
      begin = at;
      left = less(a.part(at, at, rows, std::min(wide, rows)), 0, at);
    }
    auto x = left.part(at - begin, at - begin, rows, w);
    if (at > begin) {
      x = less(x, begin, at);
    }
    auto from = a.part(at, at, rows, rows);
    auto to = y.part(at, at, rows, w);
    uint32_t groups = std::max(ceil_div(rows - w, uint32_t(LINALG_GROUP)), 1u);
    CholeskyArgs args{
        .xs = x.strides,
        .as = from.strides,
        .ys = to.strides,
        .rows = rows,
        .width = w,
        .tolerance = float(4 * (at + w) * epsilon),
        .groups = groups,
        .count = a.count};
    enc.dispatch(
        variant,
        {x.view(), from.view()},
        {to.view()},
        args,
        linear(uint64_t(groups) * a.count),
        Work{.flops = double(rows) * w * w * a.count});
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
  if (uint32_t(a.shape(-2)) > panel_rows(enc.caps())) {
    return run_on_cpu(*this, inputs, outputs);
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
  if (uint32_t(inputs[0].shape(-2)) > panel_rows(enc.caps())) {
    std::vector<array> outputs{out};
    return run_on_cpu(*this, inputs, outputs);
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
