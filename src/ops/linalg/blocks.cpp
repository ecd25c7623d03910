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

void copy_to(const Matrices& from, const Matrices& to, StreamEncoder& enc) {
  array source = from.view(), target = to.view();
  copy_strided(
      enc,
      source,
      target,
      {source.shape(), source.strides(), target.strides()});
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
    const array* places,
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
    uint32_t columns = b || places ? x.cols : at + w;
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
        .width = w,
        .columns = columns,
        .first = at,
        .groups = groups,
        .count = x.count};
    SolveVariant variant{
        .T = type_of(x.of),
        .UNIT = triangle.unit,
        .R = r.has_value(),
        .EYE = b     ? 0u
            : places ? 2u
                     : 1u};
    std::vector<array> views{block.view()};
    if (r) {
      views.push_back(r->view());
    }
    if (!b && places) {
      views.push_back(*places);
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

// Columns from `at` on of y, of which x is what earlier ones leave; the
// exchanges of rows, in all columns.
void factor_panel(
    const Matrices& x,
    const Matrices& y,
    uint32_t at,
    array& pivots,
    array& places,
    StreamEncoder& enc) {
  Type t = type_of(y.of);
  auto panel = lu_panel_variant(t, x.rows, enc.caps());
  auto to = y.part(at, at, x.rows, x.cols);
  LuPanelArgs args{
      .xs = x.strides,
      .ys = y.strides,
      .pivot_batch = pivots.shape(-1),
      .rows = x.rows,
      .width = x.cols,
      .first = at,
      .count = y.count};
  Work work{.flops = 2.0 * x.rows * x.cols * x.cols * y.count};
  enc.dispatch(
      panel,
      {x.view()},
      {to.view(), pivots, places},
      args,
      linear(y.count),
      work);
  uint32_t done = panel.WIDE == linalg_block ? x.cols : 0;
  uint32_t groups = std::max(
      ceil_div(y.cols - done, LU_SWAP_GROUP / (2 * linalg_block)),
      at > 0 ? ceil_div(y.rows, uint32_t(LU_SWAP_GROUP)) : 0);
  if (groups == 0) {
    return;
  }
  LuSwapArgs swap{
      .ys = y.strides,
      .pivot_batch = pivots.shape(-1),
      .rows = y.rows,
      .columns = y.cols,
      .width = x.cols,
      .first = at,
      .done = done,
      .groups = groups,
      .count = y.count};
  enc.dispatch(
      LuSwapVariant{t},
      {pivots},
      {y.view(), places},
      swap,
      linear(uint64_t(groups) * y.count));
}

} // namespace

void factor_lu(
    const Matrices& a,
    const Matrices& y,
    array& pivots,
    array& places,
    StreamEncoder& enc) {
  uint32_t n = std::min(y.rows, y.cols);
  if (y.cols > block_width(0, n)) {
    copy_to(a, y, enc);
  }
  for (uint32_t at = 0; at < n; at += linalg_block) {
    uint32_t w = block_width(at, n);
    uint32_t below = y.rows - at, after = y.cols - at - w;
    auto x = a.part(0, 0, below, w);
    if (at > 0) { // column-major, as the panel's invocations have rows
      auto known = y.part(at, 0, below, at), above = y.part(0, at, at, w);
      x = y.part(at, at, below, w).transposed();
      x = reduced(x, above.transposed(), known.transposed(), enc).transposed();
    }
    factor_panel(x, y, at, pivots, places, enc);
    if (after > 0) {
      auto right = y.part(at, at + w, w, after), r = right;
      if (at > 0) {
        r = reduced(r, y.part(at, 0, w, at), y.part(0, at + w, at, after), enc);
      }
      solve_triangle(
          {.t = y.part(at, at, w, w), .unit = true}, &r, nullptr, right, enc);
    }
  }
}

} // namespace mlx::core::vulkan
