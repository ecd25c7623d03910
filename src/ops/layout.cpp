#include "ops/layout.h"

#include "mlx/backend/gpu/copy.h"

namespace mlx::core::vulkan {

namespace {

// Offsets handed to 32-bit kernels are multiplied by up to 8 bytes an item in
// signed arithmetic (common/types.glsl).
bool offset_fits_32(uint64_t items, size_t itemsize) {
  return items * itemsize <= static_cast<uint64_t>(INT32_MAX);
}

} // namespace

void donate_or_alloc(const array& in, array& out) {
  if (in.flags().row_contiguous && is_donatable(in, out) &&
      in.size() == out.size()) {
    out.copy_shared_buffer(
        in, make_contiguous_strides(out.shape()), in.flags(), in.data_size());
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }
}

void fill_with_zeros(array& out, StreamEncoder& enc) {
  array zero(0, out.dtype());
  enc.add_temporary(zero);
  fill_gpu(zero, out, enc.stream());
}

array row_contiguous(const array& a, StreamEncoder& enc) {
  if (a.flags().row_contiguous) {
    return a;
  }
  array copy = contiguous_copy_gpu(a, enc.stream());
  enc.add_temporary(copy);
  return copy;
}

bool needs_large_index(const array& a) {
  // data_size() of a view with holes or of a reversed view does not bound its
  // offsets; the strides do.
  int64_t low = 0;
  int64_t high = 0;
  for (int d = 0; d < a.ndim(); ++d) {
    int64_t reach = a.strides()[d] * (static_cast<int64_t>(a.shape(d)) - 1);
    (reach < 0 ? low : high) += reach;
  }
  uint64_t items = std::max<uint64_t>(
      {a.size(), a.data_size(), static_cast<uint64_t>(high - low) + 1});
  return !offset_fits_32(items, a.itemsize());
}

} // namespace mlx::core::vulkan
