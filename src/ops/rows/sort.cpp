// Sort, ArgSort, Partition and ArgPartition by a stable merge sort. Rows that
// fit a workgroup's tile take one dispatch; longer ones are sorted by tiles,
// then merged, doubling the runs with each dispatch. Rows of a few thousand
// items are sorted by counting (sort_ranks.comp), much longer ones by digits
// (radix.cpp).
#include "kernels/sort.h"
#include "kernels/sort_ranks.h"

#include <cmath>

#include "mlx/primitives.h"
#include "ops/layout.h"
#include "ops/rows/rows.h"

namespace mlx::core {

using namespace vulkan;

namespace {

// Keys between two dispatches, and positions for an argsort.
struct Buffers {
  array keys, positions;
};

struct SortJob {
  StreamEncoder& enc;
  const array& in;
  array& out;
  bool arg;
  SortTile tile;
  SortRows rows;

  SortVariant variant(bool merge, bool last, int ndim) const {
    return {
        .T = type_of(in),
        .ARG = arg,
        .MERGE = merge,
        .LAST = last,
        .WG = tile.lanes * tile.rows,
        .ITEMS = tile.items,
        .NDIM = ndim,
        .ROWS = tile.rows};
  }
  Grid grid() const {
    return linear(rows.tiles * rows.count, tile.rows);
  }
  // Work of the tile sort: about 16 operations an item in each step of a
  // bitonic sort. Merges are memory-bound.
  Work work() const {
    double steps = std::log2(2.0 * tile.size());
    return {.flops = 8 * steps * steps * in.size()};
  }
  Buffers buffers() {
    return {
        enc.temporary(in.shape(), in.dtype()),
        enc.temporary(arg ? in.shape() : Shape{0}, uint32)};
  }
  std::vector<Operand> operands(const Buffers& b) const {
    std::vector<Operand> all{b.keys};
    if (arg) {
      all.emplace_back(b.positions);
    }
    return all;
  }
  std::vector<Operand> results(bool last, const Buffers* to) const {
    return last ? std::vector<Operand>{out} : operands(*to);
  }

  void sort_tiles(int axis, const Buffers* to) {
    bool scalar = in.ndim() == 0;
    Shape shape = scalar ? Shape{} : remove_index(in.shape(), axis);
    std::array<Strides, 1> strides{
        scalar ? Strides{} : remove_index(in.strides(), axis)};
    collapse(shape, strides);
    int ndim = variant_ndim(shape.size(), "sort");
    with_constant<1, 2, max_ndim>(ndim <= 2 ? ndim : max_ndim, [&](auto n) {
      bool last = rows.tiles == 1;
      Descriptor descriptor;
      if (arg && last && rows.post == 1 && in.flags().row_contiguous &&
          rows.count <= UINT32_MAX) {
        auto count = static_cast<uint32_t>(rows.count);
        descriptor = ArgSortRecord{type_of(in), count, rows.n};
      }
      SortTileArgs<n> args{
          rows, scalar ? 1 : in.strides(axis), nest_args<n>(shape, strides[0])};
      enc.dispatch(
          variant(false, last, n),
          {in},
          results(last, to),
          args,
          grid(),
          work(),
          descriptor);
    });
  }

  void merge(uint32_t run, const Buffers& from, const Buffers* to) {
    bool last = 2 * uint64_t(run) >= rows.n;
    SortMergeArgs args{rows, run};
    enc.dispatch(
        variant(true, last, 1),
        operands(from),
        results(last, to),
        args,
        grid());
  }
};

void sort_by_ranks(
    StreamEncoder& enc,
    const array& in,
    array& out,
    bool arg,
    uint32_t n) {
  SortRanksVariant v{type_of(in), arg};
  auto count = static_cast<uint32_t>(in.size() / n);
  uint32_t items = v.WG / v.LANES * v.OWN; // of a workgroup
  uint64_t groups = uint64_t(count) * ceil_div(n, items);
  Work work{.flops = 8.0 * n * in.size()};
  enc.dispatch(v, {in}, {out}, SortRanksArgs{count, n}, linear(groups), work);
}

void sort(const array& in, array& out, int axis, bool arg, const Stream& s) {
  out.set_data(allocator::malloc(out.nbytes()));
  axis = axis < 0 ? axis + static_cast<int>(in.ndim()) : axis;
  uint32_t n = in.ndim() == 0 ? 1 : in.shape(axis);
  SortRows rows{in.size() / n, 1, n, 0};
  for (int d = axis + 1; d < in.ndim(); ++d) {
    rows.post *= in.shape(d);
  }
  auto& enc = encoder(s);
  if (rows.post == 1 && radix_sort(enc, in, out, arg)) {
    return;
  }
  SortTile tile = sort_tile(n, in.itemsize(), arg);
  rows.tiles = ceil_div(n, tile.size());
  bool by_ranks = rows.tiles > 1
      ? sorts_by_ranks(enc.target(), rows.count, n)
      : counts_tile(enc.target(), type_of(in), rows.count, n);
  if (by_ranks && rows.post == 1 && in.flags().row_contiguous) {
    return sort_by_ranks(enc, in, out, arg, n);
  }
  SortJob job{enc, in, out, arg, tile, rows};

  // Two buffers, used alternately.
  std::vector<Buffers> buffers;
  for (uint32_t i = 1; i < std::min(rows.tiles, 3u); ++i) {
    buffers.push_back(job.buffers());
  }
  auto at = [&](int turn) {
    return turn < int(buffers.size()) ? &buffers[turn] : nullptr;
  };
  job.sort_tiles(axis, at(0));
  int turn = 0;
  for (uint64_t run = tile.size(); run < n; run *= 2, turn ^= 1) {
    job.merge(run, buffers[turn], at(turn ^ 1));
  }
}

} // namespace

void Sort::eval_gpu(const std::vector<array>& inputs, array& out) {
  sort(inputs[0], out, axis_, false, stream());
}

void ArgSort::eval_gpu(const std::vector<array>& inputs, array& out) {
  sort(inputs[0], out, axis_, true, stream());
}

void Partition::eval_gpu(const std::vector<array>& inputs, array& out) {
  sort(inputs[0], out, axis_, false, stream());
}

void ArgPartition::eval_gpu(const std::vector<array>& inputs, array& out) {
  sort(inputs[0], out, axis_, true, stream());
}

} // namespace mlx::core
