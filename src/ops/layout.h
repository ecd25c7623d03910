// Layout helpers shared by the primitives: donation and contiguity.
#pragma once

#include <vector>

#include "backend/stream_encoder.h"
#include "mlx/array.h"
#include "mlx/backend/common/utils.h"
#include "ops/view.h"

namespace mlx::core::vulkan {

// Gives `out` memory: the input's own buffer when it is donatable and
// row-contiguous with the same item size, else a fresh one.
void donate_or_alloc(const array& in, array& out);

// Gives `out` memory, and zeros from the GPU. The scalar they come from lives
// until the GPU has read it.
void fill_with_zeros(array& out, StreamEncoder& enc);

// `a` itself if row-contiguous, else a contiguous copy kept alive by `enc`.
array row_contiguous(const array& a, StreamEncoder& enc);

// Shape and strides of up to N operands in a parameter struct; mirrors
//   int ndim; int pad; int shape[D]; int64_t strides_k[D] ...
// in GLSL, with D = 16: always larger than 128 bytes, hence in the ring.
template <int N>
struct StridedParams {
  int32_t ndim = 0;
  int32_t pad = 0;
  int32_t shape[max_ndim] = {};
  int64_t strides[N][max_ndim] = {};
};

// Fills it from collapsed dimensions. Throws std::invalid_argument, naming
// `op`, if more than 16 dimensions remain.
template <int N>
StridedParams<N> strided_params(
    const char* op,
    const Shape& shape,
    const std::vector<Strides>& strides) {
  variant_ndim(shape.size(), op); // throws
  StridedParams<N> p;
  p.ndim = static_cast<int32_t>(shape.size());
  for (int d = 0; d < p.ndim; ++d) {
    p.shape[d] = shape[d];
    for (int n = 0; n < N; ++n) {
      p.strides[n][d] = strides[n][d];
    }
  }
  return p;
}

} // namespace mlx::core::vulkan
