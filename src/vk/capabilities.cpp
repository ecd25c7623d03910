#include "vk/capabilities.h"

namespace mlx::core::vulkan {

namespace {

using Offered = bool (*)(const Caps&);

constexpr Offered always = [](const Caps&) { return true; };
// Capabilities that are never enabled.
constexpr Offered never = [](const Caps&) { return false; };
constexpr Offered memory_model = [](const Caps& c) {
  return c.vulkan_memory_model;
};
constexpr Offered dot_product = [](const Caps& c) {
  return c.integer_dot_product;
};
template <VkSubgroupFeatureFlagBits Operations>
constexpr Offered subgroups =
    [](const Caps& c) { return (c.subgroup_operations & Operations) != 0; };

struct Capability {
  uint32_t value;
  const char* name;
  Offered offered;
};

// SPIR-V 3.31, with the requirements of Vulkan's "SPIR-V Capabilities".
constexpr Capability capabilities[] = {
    {0, "Matrix", always},
    {1, "Shader", always},
    {9, "Float16", [](const Caps& c) { return c.shader_float16; }},
    {10, "Float64", [](const Caps& c) { return c.shader_float64; }},
    {11, "Int64", always},
    {12, "Int64Atomics", never},
    {22, "Int16", always},
    {39, "Int8", always},
    {61, "GroupNonUniform", always},
    {62, "GroupNonUniformVote", always},
    {63, "GroupNonUniformArithmetic", always},
    {64, "GroupNonUniformBallot", always},
    {65, "GroupNonUniformShuffle", always},
    {66,
     "GroupNonUniformShuffleRelative",
     subgroups<VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT>},
    {67,
     "GroupNonUniformClustered",
     subgroups<VK_SUBGROUP_FEATURE_CLUSTERED_BIT>},
    {68, "GroupNonUniformQuad", subgroups<VK_SUBGROUP_FEATURE_QUAD_BIT>},
    {4433, "StorageBuffer16BitAccess", always},
    {4434, "UniformAndStorageBuffer16BitAccess", never},
    {4435, "StoragePushConstant16", never},
    {4448, "StorageBuffer8BitAccess", always},
    {4449, "UniformAndStorageBuffer8BitAccess", never},
    {4450, "StoragePushConstant8", never},
    {4464,
     "DenormPreserve",
     [](const Caps& c) { return c.preserve_denorm_f32; }},
    {4466,
     "SignedZeroInfNanPreserve",
     [](const Caps& c) { return c.preserve_nan_f32; }},
    {5116, "BFloat16TypeKHR", [](const Caps& c) { return c.bfloat16; }},
    {5117, "BFloat16DotProductKHR", never},
    {5118,
     "BFloat16CooperativeMatrixKHR",
     [](const Caps& c) { return c.coopmat_bf16; }},
    {5345, "VulkanMemoryModel", memory_model},
    {5346, "VulkanMemoryModelDeviceScope", memory_model},
    {5347, "PhysicalStorageBufferAddresses", always},
    {5629, "ExpectAssumeKHR", never},
    {6016, "DotProductInputAllKHR", dot_product},
    {6017, "DotProductInput4x8BitKHR", dot_product},
    {6018, "DotProductInput4x8BitPackedKHR", dot_product},
    {6019, "DotProductKHR", dot_product},
    {6022,
     "CooperativeMatrixKHR",
     [](const Caps& c) { return c.coopmat_f16 || c.coopmat_bf16; }},
    {6033, "AtomicFloat32AddEXT", never},
};

const Capability* find(uint32_t value) {
  for (auto& c : capabilities) {
    if (c.value == value) {
      return &c;
    }
  }
  return nullptr;
}

} // namespace

std::string capability_name(uint32_t capability) {
  auto* known = find(capability);
  return known ? known->name : std::to_string(capability);
}

bool offers(const Caps& caps, uint32_t capability) {
  auto* known = find(capability);
  return known && known->offered(caps);
}

} // namespace mlx::core::vulkan
