#include "drivers/null_device.h"

#include "pipeline/capabilities.h"
#include "pipeline/disk_cache.h"
#include "pipeline/pipeline.h"
#include "variants/compile.h"
#include "vk/features.h"

namespace mlx::core::vulkan {

namespace {

// Everything that the device offers, but robustness.
VkDevice open(const Vk& vk, VkPhysicalDevice physical, const Caps& caps) {
  DeviceFeatures f(
      {.matrices = caps.cooperative_matrix,
       .bf16 = caps.bfloat16,
       .dot = caps.integer_dot_product,
       .sizes = true});
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  f.append(statistics);
  vk.vkGetPhysicalDeviceFeatures2(physical, &f.all);
  f.all.features.robustBufferAccess = VK_FALSE;
  return create_device(
      vk,
      physical,
      caps,
      f,
      {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME});
}

} // namespace

std::unique_ptr<Instance> instance_of_driver() {
  std::string why;
  auto instance = Instance::create(false, why);
  if (!instance || instance->caps.empty()) {
    throw std::runtime_error(
        "There is no Vulkan device: name a driver's ICD file in "
        "VK_DRIVER_FILES. " +
        why);
  }
  return instance;
}

NullDevice::NullDevice(const Instance& instance, size_t index)
    : caps(instance.caps[index]), vk_(instance.vk) {
  device_ = open(vk_, instance.physical[index], caps);
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

  layout_ = create_layout(vk_, device_);
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

// As PipelineTable::check_device, and the push constants.
void NullDevice::check(const KernelCode& code) const {
  auto& r = code.reflection;
  auto& size = r.local_size;
  auto limit = [&](uint64_t wanted, uint64_t most, const char* resource) {
    if (wanted > most) {
      throw std::runtime_error(
          "needs " + std::to_string(wanted) + resource + ", the device has " +
          std::to_string(most));
    }
  };
  limit(
      uint64_t(size[0]) * size[1] * size[2],
      caps.max_workgroup_size,
      " invocations per workgroup");
  limit(r.shared_size, caps.shared_memory, " bytes of shared memory");
  limit(r.push_size, caps.max_push_constants, " bytes of push constants");
  for (uint32_t c : r.capabilities) {
    if (!offers(caps, c)) {
      throw std::runtime_error(
          "needs " + capability_name(c) + ", which the device does not offer");
    }
  }
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
  VkComputePipelineCreateInfo info{};
  info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  info.layout = layout_;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  uint32_t wanted = 0;
  for (auto& d : variant.defines) {
    if (d.name == "SG") {
      wanted = static_cast<uint32_t>(d.value);
    }
  }
  ask_subgroups(caps, wanted, code.reflection.local_size[0], info.stage, size);
  VkPipeline pipeline =
      create_pipeline(vk_, device_, VK_NULL_HANDLE, info, code.spirv, "");
  auto result = statistics(pipeline);
  auto& local = code.reflection.local_size;
  for (auto& one : result) {
    one["workgroup"] = local[0] * local[1] * local[2];
    one["shared"] = code.reflection.shared_size;
  }
  vk_.vkDestroyPipeline(device_, pipeline, nullptr);
  return result;
}

} // namespace mlx::core::vulkan
