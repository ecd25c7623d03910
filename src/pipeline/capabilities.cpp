#include "pipeline/capabilities.h"

#define SPV_ENABLE_UTILITY_CODE
#include <SPIRV/spirv.hpp11>

namespace mlx::core::vulkan {

std::string capability_name(uint32_t capability) {
  std::string name =
      spv::CapabilityToString(static_cast<spv::Capability>(capability));
  return name == "Unknown" ? std::to_string(capability) : name;
}

// After the requirements of Vulkan's "SPIR-V Capabilities".
bool offers(const Caps& caps, uint32_t capability) {
  using enum spv::Capability;
  switch (static_cast<spv::Capability>(capability)) {
    case Matrix:
    case Shader:
    case Int64:
    case Int16:
    case Int8:
    case GroupNonUniform:
    case GroupNonUniformVote:
    case GroupNonUniformArithmetic:
    case GroupNonUniformBallot:
    case GroupNonUniformShuffle:
    case StorageBuffer16BitAccess:
    case StorageBuffer8BitAccess:
    case PhysicalStorageBufferAddresses:
      return true;
    case Float16:
      return caps.shader_float16;
    case Float64:
      return caps.shader_float64;
    case GroupNonUniformShuffleRelative:
      return caps.subgroup_operations &
          VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT;
    case GroupNonUniformClustered:
      return caps.subgroup_operations & VK_SUBGROUP_FEATURE_CLUSTERED_BIT;
    case GroupNonUniformQuad:
      return caps.subgroup_operations & VK_SUBGROUP_FEATURE_QUAD_BIT;
    case DenormPreserve:
      return caps.preserve_denorm_f32;
    case SignedZeroInfNanPreserve:
      return caps.preserve_nan_f32;
    case BFloat16TypeKHR:
      return caps.bfloat16;
    case BFloat16CooperativeMatrixKHR:
      return caps.coopmat_bf16;
    case VulkanMemoryModel:
    case VulkanMemoryModelDeviceScope:
      return caps.vulkan_memory_model;
    case DotProductInputAll:
    case DotProductInput4x8Bit:
    case DotProductInput4x8BitPacked:
    case DotProduct:
      return caps.integer_dot_product;
    case CooperativeMatrixKHR:
      return caps.coopmat_f16 || caps.coopmat_bf16;
    default:
      return false;
  }
}

} // namespace mlx::core::vulkan
