#include "kernels/conv.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

void add_conv_variants(VariantSet& set, const Caps&) {
  auto add = [&](Type t, uint32_t mode, uint32_t axes, bool vec, bool large) {
    set.add(ConvVariant{
        .T = t,
        .MODE = mode,
        .AXES = axes,
        .VEC = vec,
        .RUN = 1,
        .LARGE = large});
  };
  auto add_depthwise = [&](Type t, uint32_t run, bool large) {
    set.add(ConvVariant{
        .T = t, .MODE = CONV_DEPTHWISE, .AXES = 1, .RUN = run, .LARGE = large});
  };
  for (Type t : float_types) {
    for (uint32_t axes : {1, 2, 3}) {
      add(t, CONV_DIRECT, axes, false, false);
    }
    add(t, CONV_DIRECT, 2, true, false);
    add(t, CONV_UNFOLD, 2, false, false);
    add(t, CONV_UNFOLD, 2, true, false);
    add_depthwise(t, 1, false);
    add_depthwise(t, 8, false);
  }
  add(Type::f32, CONV_DIRECT, 3, false, true);
  add(Type::f32, CONV_UNFOLD, 2, true, true);
  add_depthwise(Type::f16, 8, true);
}

} // namespace mlx::core::vulkan
