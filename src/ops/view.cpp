#include "ops/view.h"

#include <array>
#include <stdexcept>
#include <string>

namespace mlx::core::vulkan {

Axes collapsed(Shape shape, Strides strides) {
  std::array<Strides, 1> one{std::move(strides)};
  collapse(shape, one);
  return {std::move(shape), std::move(one[0])};
}

int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (auto s : shape) {
    n *= s;
  }
  return n;
}

std::pair<int64_t, int64_t> reach(const Shape& shape, const Strides& strides) {
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t span = strides[d] * (int64_t(shape[d]) - 1);
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

array view(const array& a, Shape shape, Strides strides, int64_t offset) {
  array out(std::move(shape), a.dtype(), nullptr, {});
  int64_t next = 1;
  bool rows = true;
  for (int d = out.ndim() - 1; d >= 0; --d) {
    rows = rows && (out.shape(d) == 1 || strides[d] == next);
    next *= out.shape(d);
  }
  array::Flags flags{rows, rows, false};
  out.copy_shared_buffer(a, strides, flags, out.size(), offset);
  return out;
}

int variant_ndim(size_t ndim, const char* op) {
  if (ndim > max_ndim) {
    throw std::invalid_argument(
        std::string("[") + op + "] The Vulkan backend handles at most " +
        std::to_string(max_ndim) + " dimensions that do not collapse; got " +
        std::to_string(ndim) + ". Make the array contiguous first.");
  }
  return ndim <= 4 ? static_cast<int>(ndim) : max_ndim;
}

bool needs_large_index(const array& a) {
  // The strides bound the offsets; data_size() does not if a view has holes or
  // is reversed.
  auto [low, high] = reach(a.shape(), a.strides());
  return beyond_32_bits(
      std::max<int64_t>(
          {int64_t(a.size()), int64_t(a.data_size()), high - low}),
      a.itemsize());
}

} // namespace mlx::core::vulkan
