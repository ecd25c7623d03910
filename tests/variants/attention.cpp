#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_attention_variants(VariantSet&, const Caps&) {}

} // namespace mlx::core::vulkan
