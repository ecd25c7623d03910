#include <initializer_list>
#include <variant>

#include "kernels/conv/conv.h"
#include "kernels/conv/depthwise.h"
#include "ops/conv/plan.h"
#include "variants/variants.h"

namespace mlx::core::vulkan {

namespace {

// Layers of whisper, of VAEs and U-Nets, of video models; wide and narrow.
void add_products(VariantSet& set, const Caps& caps) {
  struct Shape {
    uint64_t rows;
    uint32_t groups, outputs, channels;
    bool large = false; // where x is dilated
  };
  for (Type type : float_types) {
    for (auto [rows, groups, outputs, channels, large] :
         std::initializer_list<Shape>{
             {1u << 19, 1, 128, 64},
             {1u << 16, 1, 64, 3},
             {1u << 16, 1, 64, 64, true},
             {4096, 4, 64, 16},
             {300, 1, 512, 512},
             {77, 1, 20, 9, true}}) {
      for (uint32_t axes : {1, 2, 3}) {
        for (bool dilated : {false, true}) {
          uint32_t items = outputs % 8 ? 1 : 8;
          ConvProblem p{
              .type = type,
              .rows = rows,
              .groups = groups,
              .group_outputs = outputs,
              .channels = channels,
              .taps = 9,
              .tap_sum = 9,
              .axes = axes,
              .dilated = dilated,
              .large = dilated && large,
              .x_items = items,
              .w_items = items,
              .y_items = items};
          if (auto plan = plan_conv(caps, p)) {
            std::visit([&](auto& v) { set.add(v); }, plan->variant);
          }
        }
      }
    }
  }
}

} // namespace

void add_conv_variants(VariantSet& set, const Caps& caps) {
  add_products(set, caps);
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
    for (uint32_t taps : {16, 64}) {
      for (uint32_t wide : {0, 3, 5, 7}) {
        set.add(ConvDepthwiseVariant{.T = t, .TAPS = taps, .KW = wide});
      }
    }
    for (uint32_t axes : {1, 2, 3}) {
      add(t, CONV_DIRECT, axes, false, false);
    }
    add(t, CONV_DIRECT, 2, true, false);
    add(t, CONV_UNFOLD, 2, false, false);
    add(t, CONV_UNFOLD, 2, true, false);
    add_depthwise(t, 1, false);
    add_depthwise(t, 8, false);
  }
  set.add(ConvDepthwiseVariant{.T = Type::bf16, .TAPS = 16, .LARGE = true});
  add(Type::f32, CONV_DIRECT, 3, false, true);
  add(Type::f32, CONV_UNFOLD, 2, true, true);
  add_depthwise(Type::f16, 8, true);
}

} // namespace mlx::core::vulkan
