// The index tuples of Gather and Scatter, ready for their kernels.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ops/strided.h"

namespace mlx::core::vulkan {

constexpr int max_index_arrays = 20;

// Index arrays share a shape; `extra` is one more operand that walks along
// (the leading axes of a scatter's updates), last in `strides`.
struct IndexTuples {
  Shape shape{1};
  std::vector<Strides> strides;
  int ndim = 1; // of the variant: 1, 2 or max_ndim

  IndexTuples(
      const std::vector<array>& inputs,
      size_t first,
      size_t n,
      const Strides* extra,
      const char* op) {
    if (n > max_index_arrays) {
      throw std::invalid_argument(
          std::string("[") + op + "] The Vulkan backend takes at most " +
          std::to_string(max_index_arrays) + " index arrays; got " +
          std::to_string(n) + ".");
    }
    if (n == 0) {
      if (extra) {
        strides.push_back({0});
      }
      return;
    }
    shape = inputs[first].shape();
    for (size_t i = 0; i < n; ++i) {
      strides.push_back(inputs[first + i].strides());
    }
    if (extra) {
      strides.push_back(*extra);
    }
    collapse(shape, strides);
    ndim = small_ndim(shape.size(), op);
  }

  // 1, 2 or max_ndim: these kernels have two dimension counts to vary.
  static int small_ndim(size_t ndim, const char* op) {
    int n = variant_ndim(ndim, op);
    return n <= 2 ? n : max_ndim;
  }
};

// The arguments of Gather and Scatter: `count` words in slices of `slice`
// words, which start where the index tuples point to along `axes` of `target`.
// The strides of the target and the slices are in words, `ratio` items each.
inline ArgBlock tuple_args(
    uint64_t count,
    const array& target,
    const std::vector<int>& axes,
    int ratio,
    const IndexTuples& tuples,
    const Shape& slice,
    std::span<const Strides> slice_strides,
    int slice_ndim) {
  ArgBlock args;
  args.add<uint64_t>(count).add<uint64_t>(elements(slice));
  for (int axis : axes) {
    args.add<int64_t>(target.strides(axis) / ratio);
  }
  for (auto& s : tuples.strides) {
    args.indices(s, tuples.ndim, true);
  }
  for (auto& s : slice_strides) {
    args.indices(s, slice_ndim, true);
  }
  if (!axes.empty()) {
    for (int axis : axes) {
      args.add<int32_t>(target.shape(axis));
    }
    args.extents(tuples.shape, tuples.ndim).add<uint32_t>(tuples.shape.size());
  }
  args.extents(slice, slice_ndim).add<uint32_t>(slice.size());
  return args;
}

// The arguments of GatherAxis and ScatterAxis. `operands` are walked along with
// the index's elements; the first extent of `target` bounds the indices.
template <size_t N>
struct AxisArgs {
  int ndim;
  ArgBlock args;

  AxisArgs(
      const array& index,
      const array& target,
      int axis,
      const std::array<const array*, N>& operands,
      const char* op) {
    uint64_t post = 1;
    for (int d = axis + 1; d < index.ndim(); ++d) {
      post *= index.shape(d);
    }
    Shape shape = remove_index(index.shape(), axis);
    std::array<Strides, N> strides;
    args.add<uint64_t>(index.size()).add<uint64_t>(post);
    for (size_t i = 0; i < N; ++i) {
      strides[i] = remove_index(operands[i]->strides(), axis);
      args.add<int64_t>(operands[i]->strides(axis));
    }
    collapse(shape, strides);
    ndim = variant_ndim(shape.size(), op);
    for (auto& s : strides) {
      args.indices(s, ndim, true);
    }
    args.extents(shape, ndim)
        .add<uint32_t>(shape.size())
        .add<uint32_t>(index.shape(axis))
        .add<int32_t>(target.shape(axis));
  }
};

} // namespace mlx::core::vulkan
