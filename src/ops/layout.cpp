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

} // namespace mlx::core::vulkan
