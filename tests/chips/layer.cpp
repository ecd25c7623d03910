// A Vulkan layer that shows lavapipe as a chip of tests/variants/devices.cpp
// (CHIP: a part of its name). Plans then choose that chip's kernels and glslang
// compiles them, but the driver gets empty ones in their place: what a program
// computes is meaningless, and which kernels it asks for is not. Needs
// MLX_VK_TEST=trusted,assumed_rates.
#include <vulkan/vk_layer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "variants/variants.h"

using namespace mlx::core::vulkan;

namespace {

const Caps& chip() {
  static const Caps& found = [&]() -> const Caps& {
    const char* name = std::getenv("CHIP");
    for (auto& caps : device_table()) {
      if (name && caps.name.find(name) != caps.name.npos) {
        return caps;
      }
    }
    std::fprintf(stderr, "CHIP: tests/variants/devices.cpp has no such chip\n");
    std::abort();
  }();
  return found;
}

VkDriverId driver_of(const Caps& c) {
  switch (c.vendor_id) {
    case 0x1002:
      return VK_DRIVER_ID_MESA_RADV;
    case 0x8086:
      return VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
    case 0x5143:
      return VK_DRIVER_ID_MESA_TURNIP;
    case 0x10de:
      return c.name == "NVK" ? VK_DRIVER_ID_MESA_NVK
                             : VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    default:
      return VK_DRIVER_ID_MESA_HONEYKRISP;
  }
}

// The functions below this layer, of the last instance and device: a process
// uses one, after it has looked at another. Taken while an instance or device
// is made, since the loader's tables then become this layer's.
#define NEXT_OF_INSTANCES(X)              \
  X(vkCreateDevice)                       \
  X(vkEnumerateDeviceExtensionProperties) \
  X(vkGetPhysicalDeviceProperties)        \
  X(vkGetPhysicalDeviceProperties2)       \
  X(vkGetPhysicalDeviceFeatures2)
#define NEXT_OF_DEVICES(X) X(vkCreateShaderModule) X(vkCreateComputePipelines)
struct {
#define MEMBER(name) PFN_##name name;
  NEXT_OF_INSTANCES(MEMBER)
  NEXT_OF_DEVICES(MEMBER)
#undef MEMBER
} next;
PFN_vkGetInstanceProcAddr next_instance_proc;
PFN_vkGetDeviceProcAddr next_device_proc;
PFN_GetPhysicalDeviceProcAddr next_physical_proc;

// Calls f with the chain's structure of a type, if there is one.
template <typename T, typename F>
void with(void* chain, VkStructureType type, F f) {
  for (auto* s = static_cast<VkBaseOutStructure*>(chain); s; s = s->pNext) {
    if (s->sType == type) {
      f(*reinterpret_cast<T*>(s));
    }
  }
}

template <typename Info>
Info* link_of(const void* chain, VkStructureType type) {
  auto* info = static_cast<const Info*>(chain);
  while (info->sType != type || info->function != VK_LAYER_LINK_INFO) {
    info = static_cast<const Info*>(info->pNext);
  }
  return const_cast<Info*>(info);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(
    const VkInstanceCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkInstance* made) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  next_instance_proc = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  next_physical_proc = link->u.pLayerInfo->pfnNextGetPhysicalDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = reinterpret_cast<PFN_vkCreateInstance>(
      next_instance_proc(nullptr, "vkCreateInstance"));
  VkResult r = create(info, allocator, made);
#define TAKE(name) \
  next.name = reinterpret_cast<PFN_##name>(next_instance_proc(*made, #name));
  NEXT_OF_INSTANCES(TAKE)
#undef TAKE
  return r;
}

void show(VkPhysicalDeviceProperties& p) {
  const Caps& c = chip();
  std::snprintf(p.deviceName, sizeof p.deviceName, "%s", c.name.c_str());
  p.vendorID = c.vendor_id;
  p.deviceID = c.device_id;
  p.deviceType = c.type;
  p.limits.maxComputeWorkGroupInvocations = c.max_workgroup_size;
  p.limits.maxComputeSharedMemorySize = c.shared_memory;
  p.limits.maxPushConstantsSize = c.max_push_constants;
}

VKAPI_ATTR void VKAPI_CALL
properties(VkPhysicalDevice d, VkPhysicalDeviceProperties* p) {
  next.vkGetPhysicalDeviceProperties(d, p);
  show(*p);
}

VKAPI_ATTR void VKAPI_CALL
properties2(VkPhysicalDevice d, VkPhysicalDeviceProperties2* p) {
  next.vkGetPhysicalDeviceProperties2(d, p);
  const Caps& c = chip();
  show(p->properties);
  with<VkPhysicalDeviceVulkan11Properties>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
      [&](auto& s) { s.subgroupSize = c.subgroup_size; });
  with<VkPhysicalDeviceVulkan12Properties>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
      [&](auto& s) {
        if (!c.software()) {
          s.driverID = driver_of(c);
          // NVIDIA's driver flushes subnormals.
          s.shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE;
          s.shaderDenormPreserveFloat32 =
              s.driverID != VK_DRIVER_ID_NVIDIA_PROPRIETARY;
        }
      });
  with<VkPhysicalDeviceSubgroupSizeControlProperties>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
      [&](auto& s) {
        s.minSubgroupSize = c.min_subgroup_size;
        s.maxSubgroupSize = c.max_subgroup_size;
        s.requiredSubgroupSizeStages =
            c.required_subgroup_size ? VK_SHADER_STAGE_COMPUTE_BIT : 0;
      });
  with<VkPhysicalDeviceShaderIntegerDotProductProperties>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
      [&](auto& s) {
        s.integerDotProduct4x8BitPackedSignedAccelerated = c.fast_dot_signed;
        s.integerDotProduct4x8BitPackedMixedSignednessAccelerated =
            c.fast_dot_mixed;
      });
  with<VkPhysicalDeviceMaintenance4Properties>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
      [&](auto& s) { s.maxBufferSize = c.max_buffer_size; });
  // Any vendor's count will do.
  with<VkPhysicalDeviceShaderCoreProperties2AMD>(
      p->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD,
      [&](auto& s) { s.activeComputeUnitCount = c.core_count; });
}

VKAPI_ATTR void VKAPI_CALL
features2(VkPhysicalDevice d, VkPhysicalDeviceFeatures2* f) {
  next.vkGetPhysicalDeviceFeatures2(d, f);
  const Caps& c = chip();
  f->features.shaderFloat64 = c.shader_float64;
  with<VkPhysicalDeviceVulkan12Features>(
      f->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
      [&](auto& s) {
        s.shaderFloat16 = c.shader_float16;
        s.vulkanMemoryModel = s.vulkanMemoryModelDeviceScope =
            c.vulkan_memory_model;
      });
  with<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      f->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
      [&](auto& s) { s.cooperativeMatrix = c.cooperative_matrix; });
  with<VkPhysicalDeviceShaderBfloat16FeaturesKHR>(
      f->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
      [&](auto& s) {
        s.shaderBFloat16Type = c.bfloat16;
        s.shaderBFloat16CooperativeMatrix = c.coopmat_bf16;
      });
  with<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      f->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
      [&](auto& s) { s.shaderIntegerDotProduct = c.integer_dot_product; });
  with<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      f->pNext,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
      [&](auto& s) {
        s.subgroupSizeControl = c.subgroup_size_control;
        s.computeFullSubgroups = c.full_subgroups;
      });
}

constexpr const char* added[] = {
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
    VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME};

VKAPI_ATTR VkResult VKAPI_CALL extensions(
    VkPhysicalDevice d,
    const char* layer,
    uint32_t* n,
    VkExtensionProperties* out) {
  auto call = next.vkEnumerateDeviceExtensionProperties;
  uint32_t below = 0;
  call(d, layer, &below, nullptr);
  if (out) {
    call(d, layer, &below, out);
    for (auto* name : added) {
      auto& e = out[below++] = {};
      std::snprintf(e.extensionName, sizeof e.extensionName, "%s", name);
    }
  } else {
    below += std::size(added);
  }
  *n = below;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL
matrices(VkPhysicalDevice, uint32_t* n, VkCooperativeMatrixPropertiesKHR* out) {
  const Caps& c = chip();
  std::vector<VkCooperativeMatrixPropertiesKHR> all;
  auto add = [&](bool has, VkComponentTypeKHR type, MatrixShape s) {
    if (has) {
      VkCooperativeMatrixPropertiesKHR p{
          VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
      p.MSize = s.m;
      p.NSize = s.n;
      p.KSize = s.k;
      p.AType = p.BType = type;
      p.CType = p.ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
      p.scope = VK_SCOPE_SUBGROUP_KHR;
      all.push_back(p);
    }
  };
  add(c.coopmat_f16, VK_COMPONENT_TYPE_FLOAT16_KHR, c.shape_f16);
  add(c.coopmat_bf16, VK_COMPONENT_TYPE_BFLOAT16_KHR, c.shape_bf16);
  if (out) {
    std::copy(all.begin(), all.end(), out);
  }
  *n = static_cast<uint32_t>(all.size());
  return VK_SUCCESS;
}

// Without the features and extensions that only the chip has.
VKAPI_ATTR VkResult VKAPI_CALL create_device(
    VkPhysicalDevice physical,
    const VkDeviceCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkDevice* made) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  next_device_proc = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;

  VkPhysicalDeviceVulkan12Features f12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  f12.bufferDeviceAddress = f12.timelineSemaphore = f12.hostQueryReset =
      VK_TRUE;
  // The loader's structures come first.
  auto* last = reinterpret_cast<VkBaseOutStructure*>(link);
  while (last->pNext &&
         last->pNext->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO) {
    last = last->pNext;
  }
  last->pNext = reinterpret_cast<VkBaseOutStructure*>(&f12);
  std::vector<const char*> names;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    auto* name = info->ppEnabledExtensionNames[i];
    if (std::none_of(std::begin(added), std::end(added), [&](auto* a) {
          return std::strcmp(a, name) == 0;
        })) {
      names.push_back(name);
    }
  }
  VkDeviceCreateInfo less = *info;
  less.pEnabledFeatures = nullptr;
  less.enabledExtensionCount = static_cast<uint32_t>(names.size());
  less.ppEnabledExtensionNames = names.data();
  VkResult r = next.vkCreateDevice(physical, &less, allocator, made);
#define TAKE(name) \
  next.name = reinterpret_cast<PFN_##name>(next_device_proc(*made, #name));
  NEXT_OF_DEVICES(TAKE)
#undef TAKE
  return r;
}

// An empty kernel with the entry point and the local size of `code`.
std::vector<uint32_t> empty_kernel(const uint32_t* code, size_t words) {
  constexpr uint32_t entry_point = 15, execution_mode = 16, local_size = 17;
  uint32_t name = 0, size[3] = {1, 1, 1};
  for (size_t i = 5; i < words; i += code[i] >> 16) {
    uint32_t op = code[i] & 0xffff;
    if (op == entry_point) {
      name = code[i + 3];
    } else if (op == execution_mode && code[i + 2] == local_size) {
      std::copy_n(code + i + 3, 3, size);
    }
  }
  enum : uint32_t { main = 1, nothing, function, label, bound };
  auto op = [](uint32_t words, uint32_t code) { return words << 16 | code; };
  // clang-format off
  return {
      0x07230203, 0x00010500, 0, bound, 0,
      op(2, 17), 1, // OpCapability Shader
      op(3, 14), 0, 1, // OpMemoryModel Logical GLSL450
      op(5, entry_point), 5, main, name, 0,
      op(6, execution_mode), main, local_size, size[0], size[1], size[2],
      op(2, 19), nothing, // OpTypeVoid
      op(3, 33), function, nothing, // OpTypeFunction
      op(5, 54), nothing, main, 0, function, // OpFunction
      op(2, 248), label, // OpLabel
      op(1, 253), // OpReturn
      op(1, 56)}; // OpFunctionEnd
  // clang-format on
}

VKAPI_ATTR VkResult VKAPI_CALL create_module(
    VkDevice d,
    const VkShaderModuleCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkShaderModule* made) {
  auto code = empty_kernel(info->pCode, info->codeSize / 4);
  VkShaderModuleCreateInfo less = *info;
  less.codeSize = code.size() * 4;
  less.pCode = code.data();
  return next.vkCreateShaderModule(d, &less, allocator, made);
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(
    VkDevice d,
    VkPipelineCache cache,
    uint32_t count,
    const VkComputePipelineCreateInfo* infos,
    const VkAllocationCallbacks* allocator,
    VkPipeline* made) {
  std::vector<VkComputePipelineCreateInfo> less(infos, infos + count);
  for (auto& info : less) { // any subgroup size
    info.stage.pNext = nullptr;
    info.stage.flags = 0;
  }
  return next.vkCreateComputePipelines(
      d, cache, count, less.data(), allocator, made);
}

PFN_vkVoidFunction ours(const char* name) {
  static const std::map<std::string, PFN_vkVoidFunction> all = {
#define ENTRY(name, f) {#name, reinterpret_cast<PFN_vkVoidFunction>(f)}
      ENTRY(vkCreateInstance, create_instance),
      ENTRY(vkCreateDevice, create_device),
      ENTRY(vkGetPhysicalDeviceProperties, properties),
      ENTRY(vkGetPhysicalDeviceProperties2, properties2),
      ENTRY(vkGetPhysicalDeviceFeatures2, features2),
      ENTRY(vkEnumerateDeviceExtensionProperties, extensions),
      ENTRY(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, matrices),
      ENTRY(vkCreateShaderModule, create_module),
      ENTRY(vkCreateComputePipelines, create_pipelines)};
#undef ENTRY
  auto it = all.find(name);
  return it == all.end() ? nullptr : it->second;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
device_proc(VkDevice d, const char* name) {
  auto f = ours(name);
  return f ? f : next_device_proc(d, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
instance_proc(VkInstance i, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(instance_proc);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  }
  auto f = ours(name);
  return f || !i ? f : next_instance_proc(i, name);
}

// The loader asks here for functions of physical devices that it does not know.
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
physical_proc(VkInstance i, const char* name) {
  auto f = ours(name);
  return f || !next_physical_proc ? f : next_physical_proc(i, name);
}

} // namespace

extern "C" VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = instance_proc;
  v->pfnGetDeviceProcAddr = device_proc;
  v->pfnGetPhysicalDeviceProcAddr = physical_proc;
  return VK_SUCCESS;
}
