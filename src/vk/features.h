// Device features in use: one chain of structures for query and enablement.
#pragma once

#include "vk/caps.h"

namespace mlx::core::vulkan {

// X(member of Caps, member of DeviceFeatures): features that are used where a
// device has them.
#define MLXVK_FEATURES(X)                                     \
  X(shader_int16, all.features.shaderInt16)                   \
  X(shader_int64, all.features.shaderInt64)                   \
  X(shader_float64, all.features.shaderFloat64)               \
  X(storage_16bit, f11.storageBuffer16BitAccess)              \
  X(storage_8bit, f12.storageBuffer8BitAccess)                \
  X(shader_int8, f12.shaderInt8)                              \
  X(shader_float16, f12.shaderFloat16)                        \
  X(buffer_device_address, f12.bufferDeviceAddress)           \
  X(timeline_semaphore, f12.timelineSemaphore)                \
  X(host_query_reset, f12.hostQueryReset)                     \
  X(scalar_block_layout, f12.scalarBlockLayout)               \
  X(subgroup_extended_types, f12.shaderSubgroupExtendedTypes) \
  X(bfloat16, bf16.shaderBFloat16Type)                        \
  X(coopmat_bf16, bf16.shaderBFloat16CooperativeMatrix)       \
  X(integer_dot_product, dot.shaderIntegerDotProduct)         \
  X(subgroup_size_control, sizes.subgroupSizeControl)         \
  X(full_subgroups, sizes.computeFullSubgroups)

struct DeviceFeatures {
  // Structures unknown to a device are left out of the chain and stay zero.
  struct Known {
    bool matrices, bf16, dot, sizes;
  };
  explicit DeviceFeatures(const Known& known);
  DeviceFeatures(const DeviceFeatures&) = delete;
  DeviceFeatures& operator=(const DeviceFeatures&) = delete;

  // Appends another structure.
  template <typename T>
  void append(T& s) {
    *tail_ = &s;
    tail_ = &s.pNext;
  }

  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features f11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features f12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};

 private:
  void** tail_ = &all.pNext;
};

// Whether RADV_EXPERIMENTAL, or RADV_PERFTEST as earlier, names bfloat16. RADV
// then offers RDNA3's matrices of bf16, whose precision Mesa doubts.
bool radv_bfloat16(const char* (*get)(const char*));

// Creates a device with one compute queue, these features, and
// extensions_to_enable() in addition to `extensions`. Throws VkError.
VkDevice create_device(
    const Vk& vk,
    VkPhysicalDevice physical,
    const Caps& caps,
    const DeviceFeatures& features,
    const std::vector<const char*>& extensions = {});

} // namespace mlx::core::vulkan
