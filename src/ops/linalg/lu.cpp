#include "ops/layout.h"
#include "ops/linalg/blocks.h"
#include "ops/linalg/plan.h"

namespace mlx::core::vulkan {

namespace {

struct Lu {
  const Matrices& y;
  array &pivots, &places;
  StreamEncoder& enc;
  // For what blocks leave of other columns: of all, and of wide blocks.
  std::vector<Rooms> rooms;

  // Columns of y from `at` on, of which x is what earlier ones leave. False if
  // its rows still have to be exchanged.
  bool factor_panel(const Matrices& x, uint32_t at) {
    Type t = type_of(y.of);
    array from = x.view(), to = y.part(at, at, x.rows, x.cols).view();
    double flops = 2.0 * x.rows * x.cols * x.cols * y.count;
    if (x.rows <= lu_panel_rows(enc.caps())) {
      auto panel = lu_panel_variant(t, x.rows, enc.caps());
      LuPanelArgs args{
          .xs = x.strides,
          .ys = y.strides,
          .pivot_batch = pivots.shape(-1),
          .rows = x.rows,
          .width = x.cols,
          .first = at,
          .count = y.count};
      enc.dispatch(
          panel,
          {from},
          {to, pivots, places},
          args,
          linear(y.count),
          Work{.flops = flops});
      return x.cols <= panel.WIDE;
    }
    uint32_t groups = ceil_div(x.rows, uint32_t(LU_COLUMN_ROWS));
    int words = LU_STATE(x.rows, groups);
    array state = enc.scratch({int(y.count), words}, uint32);
    LuColumnArgs args{
        .xs = x.strides,
        .ys = y.strides,
        .pivot_batch = pivots.shape(-1),
        .rows = x.rows,
        .width = x.cols,
        .first = at,
        .groups = groups,
        .count = y.count};
    Grid grid = linear(uint64_t(groups) * y.count);
    std::vector<Operand> reads{from}, writes{to, pivots, places, state};
    for (; args.column <= x.cols; ++args.column) {
      enc.dispatch(
          LuColumnVariant{t, args.column == 0},
          reads,
          writes,
          args,
          grid,
          Work{.flops = flops / x.cols});
      reads.clear(); // x
    }
    return false;
  }

  // As `width` pivots from `at` on say: in `done` and `rest`, whose rows begin
  // there, and if `moves` is true in the places of rows.
  void exchange_rows(
      const Matrices& done,
      const Matrices& rest,
      uint32_t at,
      uint32_t width,
      bool moves) {
    uint32_t rows = moves && at > 0 ? y.rows : 0;
    uint32_t groups = std::max(
        ceil_div(done.cols + rest.cols, LU_SWAP_GROUP / (2 * linalg_block)),
        ceil_div(rows, uint32_t(LU_SWAP_GROUP)));
    if (groups == 0) {
      return;
    }
    LuSwapArgs args{
        .ys = done.strides,
        .rests = rest.strides,
        .pivot_batch = pivots.shape(-1),
        .rows = rows,
        .done = done.cols,
        .columns = rest.cols,
        .width = width,
        .first = at,
        .groups = groups,
        .count = y.count};
    array left = y.part(at, 0, done.rows, y.cols).view();
    enc.dispatch(
        LuSwapVariant{type_of(y.of)},
        {pivots},
        {done.cols ? done.view() : left,
         rest.cols ? rest.view() : left,
         places},
        args,
        linear(uint64_t(groups) * y.count));
  }

  // Columns of y from `first` on, by blocks of `width` columns, made of smaller
  // ones down to panels. `left`, which is overwritten, is what earlier columns
  // leave of rows from there on.
  void factor(Matrices left, uint32_t first, uint32_t width, size_t level) {
    uint32_t n = std::min(left.rows, left.cols);
    if (level == rooms.size()) {
      rooms.emplace_back(Room{y.count, left.cols, left.rows});
    }
    for (uint32_t at = 0; at < n; at += width) {
      uint32_t w = std::min(width, n - at), begin = first + at;
      uint32_t below = left.rows - w, after = left.cols - w;
      auto x = left.part(0, 0, left.rows, w);
      auto right = left.part(0, w, left.rows, after);
      auto done = y.part(begin, first, left.rows, at);
      if (w > linalg_block) {
        factor(x, begin, width / 4, level + 1);
        for (uint32_t i = 0; i < w; i += linalg_block) {
          uint32_t rows = left.rows - i;
          exchange_rows(
              done.part(i, 0, rows, at),
              right.part(i, 0, rows, after),
              begin + i,
              block_width(i, w),
              false);
        }
      } else {
        done.cols += factor_panel(x, begin) ? 0 : w;
        exchange_rows(done, right, begin, w, true);
      }
      if (after == 0) {
        return;
      }
      auto above = y.part(begin, begin + w, w, after);
      auto r = right.part(0, 0, w, after);
      Triangle triangle{.t = y.part(begin, begin, w, w), .unit = true};
      solve_triangle(triangle, &r, nullptr, above, enc);
      if (at + w == n) {
        return;
      }
      // By columns, as panels' invocations have rows.
      auto l = y.part(begin + w, begin, below, w).transposed();
      auto c = right.part(w, 0, below, after).transposed();
      auto& own = rooms[level];
      left = reduced(c, above.transposed(), l, own, enc).transposed();
    }
  }
};

} // namespace

void factor_lu(
    const Matrices& a,
    const Matrices& y,
    array& pivots,
    array& places,
    StreamEncoder& enc) {
  Rooms rooms({y.count, y.cols, y.rows});
  Matrices left = a;
  if (y.cols > linalg_block) {
    // Rows of it are exchanged.
    left = rooms.take(y.cols, y.rows, y.of.dtype(), enc).transposed();
    copy_to(a, left, enc);
  }
  Lu lu{y, pivots, places, enc, {rooms}};
  lu.factor(left, 0, block_columns(y.cols), 0);
}

} // namespace mlx::core::vulkan
