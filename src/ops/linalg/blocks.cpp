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

Matrices Room::take(uint32_t r, uint32_t c, Dtype type, StreamEncoder& enc) {
  if (!memory) {
    memory = enc.temporary({int(count), int(rows), int(cols)}, type);
  }
  return {*memory, 0, count, r, c, {int64_t(r) * c, c, 1}};
}

Matrices Rooms::take(uint32_t r, uint32_t c, Dtype type, StreamEncoder& enc) {
  std::swap(last, other);
  return last.take(r, c, type, enc);
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
  Rooms rooms({c.count, c.rows, c.cols});
  return reduced(c, a, b, rooms, enc);
}

Matrices reduced(
    const Matrices& c,
    const Matrices& a,
    const Matrices& b,
    Rooms& rooms,
    StreamEncoder& enc) {
  Matrices y = rooms.take(c.rows, c.cols, c.of.dtype(), enc);
  array to = y.view();
  reduce_into(to, c, a, b, enc);
  return y;
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

namespace {

// x = t^-1 b, by halves of halves of its rows.
struct Solver {
  const Triangle& triangle;
  const Matrices *b, &x;
  const array* places;
  StreamEncoder& enc;
  std::vector<Room> rooms = {}; // for what is left of halves, of halves of them

  // Rows of a block. `r`: what is left of b, or without b what known rows of x
  // say.
  void solve_block(uint32_t at, uint32_t w, std::optional<Matrices> r) {
    auto block = triangle.t.part(at, at, w, w);
    auto to = x.part(at, 0, w, columns(at + w));
    if (triangle.upper) {
      block = block.reversed();
      to = to.rows_reversed();
      if (r) {
        r = r->rows_reversed();
      }
    }
    uint32_t groups = ceil_div(to.cols, uint32_t(LINALG_GROUP));
    SolveArgs args{
        .ts = block.strides,
        .rs = r ? r->strides : Strided{},
        .xs = to.strides,
        .width = w,
        .columns = to.cols,
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
        Work{.flops = double(w) * w * to.cols * x.count});
  }

  // Columns of rows up to `end`: later ones of the inverse of a lower triangle
  // are zero.
  uint32_t columns(uint32_t end) const {
    return b || places ? x.cols : end;
  }

  void solve(
      uint32_t at,
      uint32_t rows,
      const std::optional<Matrices>& r,
      size_t depth = 0) {
    if (rows <= linalg_block) {
      return solve_block(at, rows, r);
    }
    uint32_t first = ceil_div(rows, 2 * linalg_block) * linalg_block;
    uint32_t second = rows - first, width = columns(at + rows);
    if (depth == rooms.size()) {
      rooms.push_back({x.count, first, x.cols});
    }
    uint32_t first_at = at + (triangle.upper ? second : 0);
    uint32_t second_at = at + (triangle.upper ? 0 : first);
    auto part = [&](uint32_t of, uint32_t count) -> std::optional<Matrices> {
      return r ? std::optional(r->part(of - at, 0, count, width)) : r;
    };
    solve(first_at, first, part(first_at, first), depth + 1);
    // Later columns of the known rows of an inverse are zero. Without them y is
    // by columns, as products are dense; few take less time than a dispatch.
    uint32_t some = first < 1024 ? width : columns(at + first);
    bool by_columns = some < width;
    auto type = x.of.dtype();
    auto& room = rooms[depth];
    auto y = by_columns ? room.take(width, second, type, enc).transposed()
                        : room.take(second, width, type, enc);
    auto as = [&](const Matrices& m) {
      return (by_columns ? m.transposed() : m).view();
    };
    array left = as(triangle.t.part(second_at, first_at, second, first));
    array known = as(x.part(first_at, 0, first, some));
    array to = as(y.part(0, 0, second, some));
    GemmCall call{by_columns ? known : left, by_columns ? left : known};
    std::optional<array> c;
    if (auto rest = part(second_at, second)) {
      call.c = &c.emplace(as(rest->part(0, 0, second, some)));
      call.alpha = b ? -1 : 1;
      call.beta = 1;
    }
    run_gemm(enc, call, to);
    if (by_columns) {
      array zero(0.0f, type);
      array rest = y.part(0, some, second, width - some).view();
      enc.add_temporary(zero);
      copy_strided(enc, zero, rest, {rest.shape(), {0, 0, 0}, rest.strides()});
    }
    solve(second_at, second, y, depth + 1);
  }
};

} // namespace

void solve_triangle(
    const Triangle& triangle,
    const Matrices* b,
    const array* places,
    const Matrices& x,
    StreamEncoder& enc) {
  Solver solver{triangle, b, x, places, enc};
  solver.solve(0, x.rows, b ? std::optional(*b) : std::nullopt);
}

} // namespace mlx::core::vulkan
