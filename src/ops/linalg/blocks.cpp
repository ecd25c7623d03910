#include "ops/linalg/blocks.h"

#include "ops/copy.h"
#include "ops/gemm/gemm.h"
#include "ops/layout.h"
#include "ops/linalg/plan.h"

namespace mlx::core::vulkan {

Matrices Matrices::part(uint32_t row, uint32_t col, uint32_t r, uint32_t c)
    const {
  Matrices m = *this;
  m.offset += row * strides.row + col * strides.col;
  m.rows = r;
  m.cols = c;
  return m;
}

Matrices Matrices::transposed() const {
  Matrices m = *this;
  std::swap(m.rows, m.cols);
  std::swap(m.strides.row, m.strides.col);
  return m;
}

Matrices Matrices::rows_reversed() const {
  Matrices m = *this;
  m.offset += (int64_t(rows) - 1) * strides.row;
  m.strides.row = -strides.row;
  return m;
}

Matrices Matrices::reversed() const {
  return rows_reversed().transposed().rows_reversed().transposed();
}

array Matrices::view() const {
  array v(
      {static_cast<int>(count), static_cast<int>(rows), static_cast<int>(cols)},
      of.dtype(),
      nullptr,
      {});
  bool dense = strides.col == 1 && strides.row == cols &&
      (count == 1 || strides.batch == int64_t(rows) * cols);
  v.copy_shared_buffer(
      of,
      {strides.batch, strides.row, strides.col},
      {.contiguous = dense, .row_contiguous = dense, .col_contiguous = false},
      v.size(),
      offset);
  return v;
}

Matrices matrices(const array& a, StreamEncoder& enc) {
  auto batch = collapsed(leading(a.shape(), 2), leading(a.strides(), 2));
  if (batch.shape.size() > 1) {
    return matrices(row_contiguous(a, enc), enc);
  }
  uint64_t rows = a.shape(-2), cols = a.shape(-1);
  return {
      .of = a,
      .count = static_cast<uint32_t>(a.size() / (rows * cols)),
      .rows = static_cast<uint32_t>(rows),
      .cols = static_cast<uint32_t>(cols),
      .strides = {
          batch.strides.empty() ? 0 : batch.strides[0],
          a.strides(-2),
          a.strides(-1)}};
}

Matrices new_matrices(
    uint32_t count,
    uint32_t rows,
    uint32_t cols,
    Dtype type,
    StreamEncoder& enc) {
  array t = enc.temporary({int(count), int(cols), int(rows)}, type);
  return matrices(t, enc).transposed();
}

void alloc_by_rows(array& a) {
  a.set_data(allocator::malloc(a.nbytes()));
}

void alloc_by_columns(array& a) {
  if (a.size() <= 1) {
    return alloc_by_rows(a);
  }
  auto strides = a.strides();
  strides[a.ndim() - 1] = a.shape(-2);
  strides[a.ndim() - 2] = 1;
  auto flags = a.flags();
  flags.contiguous = true;
  flags.row_contiguous = false;
  flags.col_contiguous = a.ndim() == 2;
  a.set_data(allocator::malloc(a.nbytes()), a.size(), strides, flags);
}

void copy_by_columns(const array& from, array& to, StreamEncoder& enc) {
  Strides strides(from.ndim());
  int last = from.ndim() - 1;
  strides[last] = from.shape(-2);
  strides[last - 1] = 1;
  int64_t size = int64_t(from.shape(-2)) * from.shape(-1);
  for (int d = last - 2; d >= 0; --d) {
    strides[d] = size;
    size *= from.shape(d);
  }
  copy_strided(enc, from, to, {from.shape(), from.strides(), strides});
}

Matrices product(const Matrices& a, const Matrices& b, StreamEncoder& enc) {
  array y =
      enc.temporary({int(a.count), int(a.rows), int(b.cols)}, a.of.dtype());
  run_gemm(enc, {.a = a.view(), .b = b.view()}, y);
  return matrices(y, enc);
}

Matrices reduced(
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    StreamEncoder& enc) {
  array y = enc.temporary(c.view().shape(), c.of.dtype());
  reduce_into(y, c, a, b, enc);
  return matrices(y, enc);
}

void reduce_into(
    array& y,
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    StreamEncoder& enc) {
  array from = c.view();
  run_gemm(
      enc,
      {.a = a.view(), .b = b.view(), .c = &from, .alpha = -1, .beta = 1},
      y);
}

void solve_triangle(
    const Triangle& triangle,
    const Matrices* b,
    const array* perm,
    const Matrices& x,
    StreamEncoder& enc) {
  auto& t = triangle.t;
  uint32_t n = t.rows;
  bool upper = triangle.upper;
  for (uint32_t done = 0; done < n; done += linalg_block) {
    uint32_t w = block_width(done, n);
    uint32_t at = upper ? n - done - w : done; // the block's first row
    uint32_t before = upper ? at + w : 0; // the first row that is known
    // Later columns of the inverse of a lower triangle are zero here.
    uint32_t columns = b || perm ? x.cols : at + w;
    std::optional<Matrices> r;
    if (b) {
      r = b->part(at, 0, w, columns);
    }
    if (done > 0) {
      auto left = t.part(at, before, w, done);
      auto known = x.part(before, 0, done, columns);
      r = r ? reduced(*r, left, known, enc) : product(left, known, enc);
    }
    auto block = t.part(at, at, w, w);
    auto to = x.part(at, 0, w, columns);
    if (upper) {
      block = block.reversed();
      to = to.rows_reversed();
      if (r) {
        r = r->rows_reversed();
      }
    }
    uint32_t groups = ceil_div(columns, uint32_t(LINALG_GROUP));
    SolveArgs args{
        .ts = block.strides,
        .rs = r ? r->strides : Strided{},
        .xs = to.strides,
        .perm_batch = n,
        .width = w,
        .columns = columns,
        .first = at,
        .groups = groups,
        .count = x.count};
    SolveVariant variant{
        .T = type_of(x.of),
        .UNIT = triangle.unit,
        .R = r.has_value(),
        .EYE = b   ? 0u
            : perm ? 2u
                   : 1u};
    std::vector<array> views{block.view()};
    if (r) {
      views.push_back(r->view());
    }
    if (!b && perm) {
      views.push_back(*perm);
    }
    std::vector<Operand> reads(views.begin(), views.end());
    enc.dispatch(
        variant,
        reads,
        {to.view()},
        args,
        linear(uint64_t(groups) * x.count),
        Work{.flops = double(w) * w * columns * x.count});
  }
}

namespace {

void factor_panel(
    const Matrices& x,
    const Matrices& y,
    uint32_t first,
    array& pivots,
    array& perm,
    StreamEncoder& enc) {
  LuPanelArgs args{
      .xs = x.strides,
      .ys = y.strides,
      .pivot_batch = pivots.shape(-1),
      .rows = y.rows,
      .width = y.cols,
      .first = first,
      .count = y.count};
  enc.dispatch(
      lu_panel_variant(type_of(y.of), y.rows, enc.caps()),
      {x.view()},
      {y.view(), pivots, perm},
      args,
      linear(y.count),
      Work{.flops = 2.0 * y.rows * y.cols * y.cols * y.count});
}

void exchange_rows(
    const Matrices& y,
    uint32_t first,
    uint32_t width,
    const array& pivots,
    array& perm,
    StreamEncoder& enc) {
  uint32_t groups = ceil_div(y.cols + 1, 64u);
  LuSwapArgs args{
      .ys = y.strides,
      .pivot_batch = pivots.shape(-1),
      .perm_batch = y.rows,
      .columns = y.cols,
      .width = width,
      .first = first,
      .groups = groups,
      .count = y.count};
  enc.dispatch(
      LuSwapVariant{type_of(y.of)},
      {pivots},
      {y.view(), perm},
      args,
      linear(uint64_t(groups) * y.count));
}

} // namespace

void factor_lu(
    const Matrices& y,
    array& pivots,
    array& perm,
    StreamEncoder& enc) {
  uint32_t n = std::min(y.rows, y.cols);
  for (uint32_t at = 0; at < n; at += linalg_block) {
    uint32_t w = block_width(at, n);
    uint32_t below = y.rows - at, after = y.cols - at - w;
    auto panel = y.part(at, at, below, w);
    // Column-major, as the panel's invocations have rows.
    auto x = at == 0 ? panel
                     : reduced(
                           panel.transposed(),
                           y.part(0, at, at, w).transposed(),
                           y.part(at, 0, below, at).transposed(),
                           enc)
                           .transposed();
    factor_panel(x, panel, at, pivots, perm, enc);
    exchange_rows(y, at, w, pivots, perm, enc);
    if (after > 0) {
      auto right = y.part(at, at + w, w, after);
      auto r = at == 0
          ? right
          : reduced(
                right, y.part(at, 0, w, at), y.part(0, at + w, at, after), enc);
      solve_triangle(
          {.t = y.part(at, at, w, w), .unit = true}, &r, nullptr, right, enc);
    }
  }
}

} // namespace mlx::core::vulkan
