#include "kernels/rope.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_row_variants(VariantSet& set, const Caps&) {
  for (Type t : float_types) {
    for (int bits = 0; bits < 16; ++bits) {
      set.add(RopeVariant{
          .T = t,
          .TRADITIONAL = bool(bits & 1),
          .FREQS = bool(bits & 2),
          .VEC = bool(bits & 4),
          .FORWARD = bool(bits & 8)});
    }
  }
}

} // namespace mlx::core::vulkan
