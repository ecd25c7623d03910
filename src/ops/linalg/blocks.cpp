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

Matrices zero_matrices(
    uint32_t count,
    uint32_t rows,
    uint32_t cols,
    Dtype type,
    StreamEncoder& enc) {
  Shape shape{int(count), int(rows), int(cols)};
  return matrices(vulkan::zeros(std::move(shape), type, enc), enc);
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

// Factors the first `width` columns of `rest`, what earlier ones leave of rows
// and columns from `at` on, to y, and exchanges rows of the others and of y.
void factor_panel(
    const Matrices& rest,
    const Matrices& y,
    uint32_t at,
    uint32_t width,
    array& pivots,
    array& places,
    StreamEncoder& enc) {
  Type t = type_of(y.of);
  auto panel = lu_panel_variant(t, rest.rows, enc.caps());
  auto to = y.part(at, at, rest.rows, width);
  LuPanelArgs args{
      .xs = rest.strides,
      .ys = y.strides,
      .pivot_batch = pivots.shape(-1),
      .rows = rest.rows,
      .width = width,
      .first = at,
      .count = y.count};
  enc.dispatch(
      panel,
      {rest.part(0, 0, rest.rows, width).view()},
      {to.view(), pivots, places},
      args,
      linear(y.count),
      Work{.flops = 2.0 * rest.rows * width * width * y.count});
  auto left = y.part(at, 0, rest.rows, at);
  left.cols += width > panel.WIDE ? width : 0;
  auto right = rest.part(0, width, rest.rows, rest.cols - width);
  uint32_t groups = std::max(
      ceil_div(left.cols + right.cols, LU_SWAP_GROUP / (2 * linalg_block)),
      at > 0 ? ceil_div(y.rows, uint32_t(LU_SWAP_GROUP)) : 0);
  if (groups == 0) {
    return;
  }
  LuSwapArgs swap{
      .ys = left.strides,
      .rests = right.strides,
      .pivot_batch = pivots.shape(-1),
      .rows = y.rows,
      .done = left.cols,
      .columns = right.cols,
      .width = width,
      .first = at,
      .groups = groups,
      .count = y.count};
  enc.dispatch(
      LuSwapVariant{t},
      {pivots},
      {y.part(at, 0, rest.rows, y.cols).view(),
       right.cols ? right.view() : to.view(),
       places},
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
  // Two pieces of memory in turn for what the columns before `at` leave, by
  // columns, as the panels' invocations have rows.
  Matrices rest = a;
  std::optional<array> other;
  if (y.cols > block_width(0, n)) {
    rest = new_matrices(y.count, y.rows, y.cols, y.of.dtype(), enc);
    copy_to(a, rest, enc);
  }
  for (uint32_t at = 0; at < n; at += linalg_block) {
    uint32_t w = block_width(at, n);
    uint32_t below = rest.rows - w, after = rest.cols - w;
    factor_panel(rest, y, at, w, pivots, places, enc);
    if (after == 0) {
      return;
    }
    auto above = y.part(at, at + w, w, after), r = rest.part(0, w, w, after);
    solve_triangle(
        {.t = y.part(at, at, w, w), .unit = true}, &r, nullptr, above, enc);
    if (at + w == n) {
      return;
    }
    int64_t size = int64_t(below) * after;
    if (!other) {
      other =
          enc.temporary({int(y.count), int(after), int(below)}, y.of.dtype());
    }
    Matrices next{*other, 0, y.count, after, below, {size, below, 1}};
    array to = next.view();
    auto left = y.part(at + w, at, below, w), c = rest.part(w, w, below, after);
    reduce_into(to, c.transposed(), above.transposed(), left.transposed(), enc);
    other = rest.of;
    rest = next.transposed();
  }
}

} // namespace mlx::core::vulkan
