#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_index_variants(VariantSet&, const Caps&) {}

} // namespace mlx::core::vulkan
