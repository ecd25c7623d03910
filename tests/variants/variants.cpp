#include "variants/variants.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

void add_all(VariantSet& set, const Caps& caps) {
  set.float64 = caps.shader_float64;
  for (auto* add :
       {add_gemm_variants,
        add_conv_variants,
        add_quant_variants,
        add_attention_variants,
        add_elementwise_variants,
        add_row_variants,
        add_reduce_variants,
        add_index_variants,
        add_linalg_variants}) {
    add(set, caps);
  }
}

} // namespace

bool AnyVariant::has(std::string_view name) const {
  return std::any_of(
      defines.begin(), defines.end(), [&](auto& d) { return d.name == name; });
}

bool AnyVariant::names(Type type) const {
  return std::any_of(defines.begin(), defines.end(), [&](auto& d) {
    return d.kind == Define::Kind::Type && static_cast<Type>(d.value) == type;
  });
}

void VariantSet::add(AnyVariant variant) {
  if (variant.names(Type::f64) && !float64) {
    return;
  }
  if (names_.insert(log_name(variant.file, variant.defines)).second) {
    all_.push_back(std::move(variant));
  }
}

VariantSet variants_of(const Caps& caps) {
  VariantSet set;
  add_all(set, caps);
  return set;
}

const VariantSet& all_variants() {
  static const VariantSet all = [] {
    VariantSet set;
    for (auto& caps : device_table()) {
      add_all(set, caps);
    }
    add_all(set, least_device());
    return set;
  }();
  return all;
}

} // namespace mlx::core::vulkan
