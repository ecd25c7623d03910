#include "ops/layout.h"

#include "mlx/backend/gpu/copy.h"

namespace mlx::core::vulkan {

void donate_or_alloc(const array& in, array& out) {
  if (in.flags().row_contiguous && is_donatable(in, out) &&
      in.size() == out.size()) {
    out.copy_shared_buffer(
        in, make_contiguous_strides(out.shape()), in.flags(), in.data_size());
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }
}

void alloc_like(const array& in, array& out, bool donatable) {
  if (donatable && in.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(in);
  } else {
    out.set_data(
        allocator::malloc(in.data_size() * out.itemsize()),
        in.data_size(),
        in.strides(),
        in.flags());
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

uint32_t mask_kind(const array* mask) {
  return !mask ? 0 : mask->dtype() == bool_ ? 1 : 2;
}

} // namespace mlx::core::vulkan
