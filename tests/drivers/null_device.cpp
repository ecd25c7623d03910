#include "drivers/null_device.h"

#include "pipeline/disk_cache.h"

namespace mlx::core::vulkan {

NullDevice::NullDevice(const Instance& instance, size_t index)
    : caps(instance.caps[index]), vk_(instance.vk) {
  device_ = create_device(instance.physical[index]);
  std::string why;
  if (!vk_.load_device(device_, why)) {
    throw std::runtime_error(why);
  }
  auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        vk_.vkGetDeviceProcAddr(device_, name));
    if (!function) {
      throw std::runtime_error(caps.name + " has no " + name + ".");
    }
  };
  load(get_properties_, "vkGetPipelineExecutablePropertiesKHR");
  load(get_statistics_, "vkGetPipelineExecutableStatisticsKHR");

  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, max_push_args};
  VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  vk_check(
      vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_),
      "vkCreatePipelineLayout");

  // As on hardware whose probes pass (runtime/device.cpp, probe.cpp).
  for (auto [has, name] :
       {std::pair(caps.preserve_nan_f32, "FLOAT_CONTROLS"),
        std::pair(caps.preserve_denorm_f32, "DENORM_PRESERVE_F32"),
        std::pair(caps.shader_float16, "NATIVE_F16"),
        std::pair(caps.shader_float16, "NATIVE_F16_ROUNDING")}) {
    if (has) {
      globals_.emplace_back(name, "1");
    }
  }
}

NullDevice::~NullDevice() {
  if (device_) {
    vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
    vk_.vkDestroyDevice(device_, nullptr);
  }
}

VkDevice NullDevice::create_device(VkPhysicalDevice physical) const {
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
      &statistics};
  VkPhysicalDeviceVulkan12Features f12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &sizes};
  VkPhysicalDeviceVulkan11Features f11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &f12};
  VkPhysicalDeviceFeatures2 f{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &f11};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  void** tail = &statistics.pNext;
  if (caps.cooperative_matrix) {
    *tail = &coopmat;
    tail = &coopmat.pNext;
  }
  if (caps.bfloat16) {
    *tail = &bf16;
  }
  vk_.vkGetPhysicalDeviceFeatures2(physical, &f);
  f.features.robustBufferAccess = VK_FALSE;

  auto extensions = extensions_to_enable(caps);
  extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = caps.compute_queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &f};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  vk_check(
      vk_.vkCreateDevice(physical, &info, nullptr, &device),
      "vkCreateDevice",
      " on " + caps.name);
  return device;
}

// As PipelineTable::check_device, and the push constants.
void NullDevice::check(const KernelCode& code) const {
  auto& r = code.reflection;
  auto& size = r.local_size;
  auto limit = [&](uint64_t wanted, uint64_t most, const char* what) {
    if (wanted > most) {
      throw std::runtime_error(
          "needs " + std::to_string(wanted) + what + ", the device has " +
          std::to_string(most));
    }
  };
  limit(
      uint64_t(size[0]) * size[1] * size[2],
      caps.max_workgroup_size,
      " invocations a workgroup");
  limit(r.shared_size, caps.shared_memory, " bytes of shared memory");
  limit(r.push_size, caps.max_push_constants, " bytes of push constants");
  for (auto [capability, has] :
       {std::pair(9u, caps.shader_float16),
        std::pair(5116u, caps.bfloat16),
        std::pair(5118u, caps.coopmat_bf16),
        std::pair(5345u, caps.vulkan_memory_model),
        std::pair(6019u, caps.integer_dot_product),
        std::pair(6022u, caps.coopmat_f16 || caps.coopmat_bf16)}) {
    if (r.has_capability(capability) && !has) {
      throw std::runtime_error(
          "needs " + capability_name(capability) +
          ", which the device does not offer");
    }
  }
}

VkPipeline NullDevice::create_pipeline(
    const AnyVariant& variant,
    const KernelCode& code) const {
  VkShaderModuleCreateInfo module_info{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = code.spirv.size() * 4;
  module_info.pCode = code.spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  vk_check(
      vk_.vkCreateShaderModule(device_, &module_info, nullptr, &module),
      "vkCreateShaderModule");
  VkComputePipelineCreateInfo info{
      VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  info.layout = layout_;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  // As PipelineTable::build.
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  bool varies = caps.min_subgroup_size != caps.max_subgroup_size;
  for (auto& d : variant.defines) {
    if (d.name == "SG" && varies && caps.required_subgroup_size) {
      size.requiredSubgroupSize = static_cast<uint32_t>(d.value);
      info.stage.pNext = &size;
      if (caps.full_subgroups) {
        info.stage.flags |=
            VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
      }
    }
  }
  if (varies && caps.subgroup_size_control && !info.stage.pNext) {
    info.stage.flags |=
        VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT;
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkResult result = vk_.vkCreateComputePipelines(
      device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  vk_.vkDestroyShaderModule(device_, module, nullptr);
  vk_check(result, "vkCreateComputePipelines");
  return pipeline;
}

nlohmann::json NullDevice::statistics(VkPipeline pipeline) const {
  VkPipelineInfoKHR of{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  of.pipeline = pipeline;
  uint32_t n = 0;
  vk_check(
      get_properties_(device_, &of, &n, nullptr),
      "vkGetPipelineExecutablePropertiesKHR");
  std::vector<VkPipelineExecutablePropertiesKHR> executables(
      n, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  vk_check(
      get_properties_(device_, &of, &n, executables.data()),
      "vkGetPipelineExecutablePropertiesKHR");
  auto all = nlohmann::json::array();
  for (uint32_t i = 0; i < n; ++i) {
    VkPipelineExecutableInfoKHR which{
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    which.pipeline = pipeline;
    which.executableIndex = i;
    uint32_t count = 0;
    vk_check(
        get_statistics_(device_, &which, &count, nullptr),
        "vkGetPipelineExecutableStatisticsKHR");
    std::vector<VkPipelineExecutableStatisticKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    vk_check(
        get_statistics_(device_, &which, &count, found.data()),
        "vkGetPipelineExecutableStatisticsKHR");
    nlohmann::json one{{"subgroup", executables[i].subgroupSize}};
    for (auto& s : found) {
      switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
          one[s.name] = s.value.b32;
          break;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
          one[s.name] = s.value.i64;
          break;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
          one[s.name] = s.value.f64;
          break;
        default:
          one[s.name] = s.value.u64;
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

nlohmann::json NullDevice::compile(const AnyVariant& variant) const {
  auto code = compile_kernel(
      variant.file, variant.defines, false, globals_, &default_disk_cache());
  check(code);
  VkPipeline pipeline = create_pipeline(variant, code);
  auto result = statistics(pipeline);
  vk_.vkDestroyPipeline(device_, pipeline, nullptr);
  return result;
}

} // namespace mlx::core::vulkan
