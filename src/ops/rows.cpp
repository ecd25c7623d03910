#include "ops/rows.h"

#include <algorithm>
#include <array>

#include "mlx/backend/gpu/copy.h"
#include "ops/strided.h"

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
  return length % 4 == 0 && outer_stride % 4 == 0 && inner_stride % 4 == 0 &&
      x.offset() % (4 * x.itemsize()) == 0;
}

Rows rows_of(const array& a, StreamEncoder& enc, bool memory_order) {
  bool donatable = a.is_donatable();
  int last = a.ndim() - 1;
  uint32_t length = a.shape(last);
  uint64_t count = length ? a.size() / length : 0;
  bool last_contiguous = a.strides()[last] == 1 || length == 1;
  if (last_contiguous && is_dense(a) &&
      (memory_order || a.flags().row_contiguous)) {
    return {a, count, length, 1, length, 0, true, donatable};
  }
  if (last_contiguous) {
    Shape shape(a.shape().begin(), a.shape().end() - 1);
    std::array<Strides, 1> strides{
        Strides(a.strides().begin(), a.strides().end() - 1)};
    collapse(shape, strides);
    auto& s = strides[0];
    if (shape.size() == 1) {
      return {a, count, length, 1, s[0], 0, false};
    }
    if (shape.size() == 2) {
      auto inner = static_cast<uint32_t>(shape[1]);
      return {a, count, length, inner, s[0], s[1], false};
    }
  }
  array copy = contiguous_copy_gpu(a, enc.stream());
  enc.add_temporary(copy);
  return {copy, count, length, 1, length, 0, false};
}

void alloc_rows(const Rows& rows, const array& in, array& out) {
  if (!rows.dense) {
    out.set_data(allocator::malloc(out.nbytes()));
  } else if (rows.donatable && in.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(
        allocator::malloc(in.data_size() * out.itemsize()),
        in.data_size(),
        in.strides(),
        in.flags());
  }
}

RowTeam row_team(uint64_t rows, uint32_t length, int most_chunks) {
  int lanes = length <= 128 ? 32
      : length <= 512       ? (rows >= 256 ? 32 : 128)
      : length <= 1024      ? 128
                            : 256;
  int chunks =
      static_cast<int>((uint64_t(length) + 4 * lanes - 1) / (4 * lanes));
  return {lanes, chunks <= most_chunks ? chunks : 0};
}

Grid row_grid(uint64_t rows, int lanes) {
  return linear(rows, std::max(128 / lanes, 1));
}

} // namespace mlx::core::vulkan
