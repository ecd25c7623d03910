#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_elementwise_variants(VariantSet&, const Caps&) {}

} // namespace mlx::core::vulkan
