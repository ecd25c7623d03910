// The index tuples of Gather and Scatter, ready for their kernels.
#pragma once

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

} // namespace mlx::core::vulkan
