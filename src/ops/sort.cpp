// Sort, ArgSort, Partition and ArgPartition: one stable merge sort. Rows that
// fit a workgroup's tile take one dispatch; longer ones are sorted by tiles,
// then merged, doubling the sorted runs with each dispatch.
#include "mlx/primitives.h"

#include "ops/strided.h"

namespace mlx::core {

namespace {

// The items that one workgroup sorts, of few sizes so that few variants are
// compiled. Keys and positions fit the 16 KiB of shared memory that every
// device has.
struct Tile {
  int threads, items;
  Tile(int64_t n, size_t itemsize, bool arg) {
    int most = itemsize == 8 || arg ? 1024 : 2048;
    int size = n <= 32 ? 32 : n <= 128 ? 128 : n <= 512 ? 512 : 1024;
    size = n > size ? most : size;
    items = size <= 32 ? 1 : size <= 1024 ? 4 : 8;
    threads = size / items;
  }
  int size() const {
    return threads * items;
  }
};

struct MergeParams { // the last member is MERGE's
  uint64_t rows, post;
  uint32_t size, tiles, run;
};

void sort(const array& in, array& out, int axis, bool arg, const Stream& s) {
  out.set_data(allocator::malloc(out.nbytes()));
  if (out.size() == 0) {
    return;
  }
  auto& enc = vulkan::encoder(s);
  auto type = vulkan::type_of(in);
  axis = axis < 0 ? axis + static_cast<int>(in.ndim()) : axis;
  bool scalar = in.ndim() == 0;
  int64_t size = scalar ? 1 : in.shape(axis);
  int64_t rows = in.size() / size, post = 1;
  for (int d = axis + 1; d < in.ndim(); ++d) {
    post *= in.shape(d);
  }
  Shape shape = scalar ? Shape{} : remove_index(in.shape(), axis);
  std::array<Strides, 1> strides{
      scalar ? Strides{} : remove_index(in.strides(), axis)};
  vulkan::collapse(shape, strides);
  int ndim = vulkan::variant_ndim(shape.size(), "sort");
  ndim = ndim <= 2 ? ndim : vulkan::max_ndim;

  Tile tile(size, in.itemsize(), arg);
  uint32_t tiles = (size + tile.size() - 1) / tile.size();
  auto grid = vulkan::linear(uint64_t(tiles) * rows);
  auto kernel = [&](bool merge, bool last) -> const vulkan::Kernel& {
    return enc.kernel(
        "sort",
        {{"T", type},
         {"ARG", int(arg)},
         {"MERGE", int(merge)},
         {"LAST", int(last)},
         {"WG", tile.threads},
         {"ITEMS", tile.items},
         {"NDIM", merge ? 1 : ndim}});
  };

  // Keys and positions between dispatches: two of each, taken in turn.
  std::vector<array> keys, positions;
  if (tiles > 1) {
    for (int i = 0; i < (tiles > 2 ? 2 : 1); ++i) {
      keys.push_back(enc.temporary(in.shape(), in.dtype()));
      positions.push_back(enc.temporary(arg ? in.shape() : Shape{0}, uint32));
    }
  }
  auto results = [&](bool last, int turn) {
    std::vector<vulkan::Operand> r;
    if (last) {
      r.emplace_back(out);
    } else {
      r.emplace_back(keys[turn]);
      if (arg) {
        r.emplace_back(positions[turn]);
      }
    }
    return r;
  };

  vulkan::ArgBlock args;
  args.add<uint64_t>(rows)
      .add<uint64_t>(post)
      .add<uint32_t>(size)
      .add<uint32_t>(tiles)
      .add<int64_t>(scalar ? 1 : in.strides(axis))
      .indices(strides[0], ndim, true)
      .extents(shape, ndim)
      .add<uint32_t>(shape.size());
  vulkan::Operand src(in);
  enc.dispatch_bytes(
      kernel(false, tiles == 1),
      {&src, 1},
      results(tiles == 1, 0),
      args.data(),
      args.size(),
      grid);

  int turn = 0;
  for (int64_t run = tile.size(); run < size; run *= 2, turn ^= 1) {
    bool last = 2 * run >= size;
    std::vector<vulkan::Operand> reads;
    reads.emplace_back(keys[turn]);
    if (arg) {
      reads.emplace_back(positions[turn]);
    }
    MergeParams params{
        uint64_t(rows), uint64_t(post), uint32_t(size), tiles, uint32_t(run)};
    enc.dispatch_bytes(
        kernel(true, last),
        reads,
        results(last, turn ^ 1),
        &params,
        sizeof(params),
        grid);
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
