// The kernel variants that the backend can ask for: what its plans choose over
// a table of devices, and the types, layouts and operations that other
// primitives take. The null tier compiles them all, the driver tiers those of
// their chip. Each family is a file beside this one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/key.h"
#include "pipeline/variant.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

struct AnyVariant {
  std::string file; // without .comp
  std::vector<Define> defines; // their texts are literals
  std::optional<uint32_t> shared_memory; // bytes that plans count with

  bool has(std::string_view name) const;
  bool names(Type type) const;
};

class VariantSet {
 public:
  // Each once.
  template <KernelVariant V>
  void add(const V& variant) {
    auto defines = variant.defines();
    std::optional<uint32_t> shared;
    if constexpr (requires { variant.shared_memory(); }) {
      shared = variant.shared_memory();
    }
    add({std::string(V::file), {defines.begin(), defines.end()}, shared});
  }

  const std::vector<AnyVariant>& all() const {
    return all_;
  }

  bool float64 = true; // whether those that name f64 are added

 private:
  void add(AnyVariant variant);

  std::vector<AnyVariant> all_;
  std::set<std::string> names_;
};

// Snapshots of the devices that plans are asked about.
const std::vector<Caps>& device_table();

// Has what missing_features() (vk/caps.h) asks for and nothing else.
Caps least_device();

// With what a test, or a user (Config::int8_activations), asks for.
inline Target asked(const Caps& caps, const TestHooks& test, int int8 = 0) {
  return {caps, policy_of(caps, test, int8)};
}

// What plans choose on `caps`, family by family.
void add_gemm_variants(VariantSet& set, const Caps& caps);
void add_conv_variants(VariantSet& set, const Caps& caps);
void add_quant_variants(VariantSet& set, const Caps& caps);
void add_attention_variants(VariantSet& set, const Caps& caps);
void add_elementwise_variants(VariantSet& set, const Caps& caps);
void add_row_variants(VariantSet& set, const Caps& caps);
void add_reduce_variants(VariantSet& set, const Caps& caps);
void add_index_variants(VariantSet& set, const Caps& caps);
void add_linalg_variants(VariantSet& set, const Caps& caps);

// All of one device, and of all in the table and the least one.
VariantSet variants_of(const Caps& caps);
const VariantSet& all_variants();

// The types of kernels that take any, and those of floating-point ones.
#define MLXVK_TYPE(type, ...) Type::type,
constexpr Type all_types[] = {MLXVK_TYPES(MLXVK_TYPE)};
#undef MLXVK_TYPE
constexpr Type float_types[] = {Type::f32, Type::f16, Type::bf16};

} // namespace mlx::core::vulkan
