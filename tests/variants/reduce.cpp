#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_reduce_variants(VariantSet&, const Caps&) {}

} // namespace mlx::core::vulkan
