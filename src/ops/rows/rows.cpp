#include "ops/rows/rows.h"

#include <algorithm>

#include "mlx/backend/gpu/copy.h"
#include "ops/layout.h"

namespace mlx::core::vulkan {

namespace {

bool is_dense(const array& a) {
  if (!a.flags().contiguous || a.size() != a.data_size()) {
    return false;
  }
  for (int d = 0; d < a.ndim(); ++d) {
    if (a.shape(d) > 1 && a.strides()[d] <= 0) {
      return false;
    }
  }
  return true;
}

} // namespace

bool Rows::vector4() const {
  return args.n % 4 == 0 && args.outer_stride % 4 == 0 &&
      args.inner_stride % 4 == 0 && by_fours(x);
}

Rows rows_of(const array& a, StreamEncoder& enc, bool memory_order) {
  bool donatable = a.is_donatable();
  int last = a.ndim() - 1;
  uint32_t n = a.shape(last);
  RowArgs args{
      .count = n ? a.size() / n : 0,
      .outer_stride = n,
      .inner_stride = 0,
      .inner = 1,
      .n = n};
  bool last_contiguous = a.strides()[last] == 1 || n == 1;
  if (last_contiguous && is_dense(a) &&
      (memory_order || a.flags().row_contiguous)) {
    return {a, args, true, donatable};
  }
  if (last_contiguous) {
    auto [shape, strides] =
        collapsed(leading(a.shape(), 1), leading(a.strides(), 1));
    if (shape.size() <= 2) {
      args.outer_stride = strides[0];
      if (shape.size() == 2) {
        args.inner = shape[1];
        args.inner_stride = strides[1];
      }
      return {a, args};
    }
  }
  array copy = contiguous_copy_gpu(a, enc.stream());
  enc.add_temporary(copy);
  return {copy, args};
}

void alloc_rows(const Rows& rows, const array& in, array& out) {
  if (!rows.dense) {
    out.set_data(allocator::malloc(out.nbytes()));
  } else {
    alloc_like(in, out, rows.donatable);
  }
}

void check_floating(const array& out, const char* op) {
  if (!issubdtype(out.dtype(), floating)) {
    throw std::runtime_error(
        std::string("[") + op + "] The Vulkan backend computes " + op +
        " of floating point types only. Cast the input first.");
  }
}

Grid row_grid(uint64_t rows, int lanes) {
  return linear(rows, std::max(128 / lanes, 1));
}

} // namespace mlx::core::vulkan
