#include "variants/variants.h"

#include <algorithm>

#include "pipeline/sources.h"

namespace mlx::core::vulkan {

namespace {

void add_all(VariantSet& set, const Caps& caps) {
  for (auto* add :
       {add_gemm_variants,
        add_conv_variants,
        add_quant_variants,
        add_attention_variants,
        add_elementwise_variants,
        add_row_variants,
        add_reduce_variants,
        add_index_variants}) {
    add(set, caps);
  }
}

void add_lines(VariantSet& set) {
  for (auto& file : kernel_files()) {
    set.add_line(file.substr(0, file.size() - 5), *read_source(file));
  }
}

} // namespace

bool AnyVariant::has(std::string_view name) const {
  return std::any_of(
      defines.begin(), defines.end(), [&](auto& d) { return d.name == name; });
}

void VariantSet::add(std::string_view file, std::vector<Define> defines) {
  if (names_.insert(log_name(file, defines)).second) {
    all_.push_back({std::string(file), std::move(defines)});
  }
}

void VariantSet::add_line(std::string_view file, std::string_view source) {
  for (auto& values : parse_variants(source)) {
    add(file, to_defines(lines_.emplace_back(values)));
  }
}

VariantSet variants_of(const Caps& caps) {
  VariantSet set;
  add_all(set, caps);
  add_lines(set);
  return set;
}

const VariantSet& all_variants() {
  static const VariantSet all = [] {
    VariantSet set;
    for (auto& caps : device_table()) {
      add_all(set, caps);
    }
    add_lines(set);
    return set;
  }();
  return all;
}

} // namespace mlx::core::vulkan
