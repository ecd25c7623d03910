// A Vulkan device that compiles pipelines and reports what its compiler made
// of them: a driver without its hardware (RADV's null device, Mesa's drm
// shims). Nothing is dispatched. Compiling is thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pipeline/library.h"
#include "variants/variants.h"
#include "vk/instance.h"

namespace mlx::core::vulkan {

// The driver's instance, with a device at least. Throws std::runtime_error if
// it has none.
std::unique_ptr<Instance> instance_of_driver();

class NullDevice {
 public:
  // Everything that the device offers is enabled, but robustness.
  NullDevice(const Instance& instance, size_t index);
  ~NullDevice();
  NullDevice(const NullDevice&) = delete;
  NullDevice& operator=(const NullDevice&) = delete;

  // One object an executable of the pipeline (a driver may make several, of
  // different subgroup sizes): "subgroup", "workgroup", and the driver's own
  // statistics by their names. Throws std::exception where the variant needs
  // what the device lacks, goes beyond its limits, or does not compile.
  nlohmann::json compile(const AnyVariant& variant) const;

  const Caps caps;

 private:
  void check(const KernelCode& code) const;
  nlohmann::json statistics(VkPipeline pipeline) const;

  Vk vk_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  PFN_vkGetPipelineExecutablePropertiesKHR get_properties_ = nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR get_statistics_ = nullptr;
  NamedValues globals_;
};

} // namespace mlx::core::vulkan
