#include "vk/caps.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "vk/config.h"
#include "vk/core_counts.h"
#include "vk/features.h"

namespace mlx::core::vulkan {

namespace {

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) {
    return std::tolower(c);
  });
  return s;
}

// Appends a structure to the pNext chain that ends at `tail`, if it is known to
// the device.
template <typename T>
void chain(void**& tail, bool known, T& s) {
  if (known) {
    *tail = &s;
    tail = &s.pNext;
  }
}

struct Extensions {
  Extensions(const Vk& vk, VkPhysicalDevice device) {
    uint32_t n = 0;
    vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
    all.resize(n);
    vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, all.data());
  }
  bool has(const char* name) const {
    return std::any_of(all.begin(), all.end(), [&](auto& e) {
      return std::strcmp(e.extensionName, name) == 0;
    });
  }
  std::vector<VkExtensionProperties> all;
};

bool has_size_control(const Caps& c, const Extensions& extensions) {
  return c.api_version >= VK_API_VERSION_1_3 ||
      extensions.has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
}

std::string hexadecimal(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  std::string out;
  for (uint8_t b : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", b);
    out += two;
  }
  return out;
}

void query_basics(const Vk& vk, VkPhysicalDevice device, Caps& c) {
  VkPhysicalDeviceProperties p;
  vk.vkGetPhysicalDeviceProperties(device, &p);
  c.api_version = p.apiVersion;
  c.name = p.deviceName;
  c.vendor_id = p.vendorID;
  c.device_id = p.deviceID;
  c.driver_version = p.driverVersion;
  c.type = p.deviceType;
  c.max_workgroup_size = p.limits.maxComputeWorkGroupInvocations;
  std::copy_n(p.limits.maxComputeWorkGroupSize, 3, c.max_workgroup_axes);
  c.shared_memory = p.limits.maxComputeSharedMemorySize;
  c.max_push_constants = p.limits.maxPushConstantsSize;
  c.timestamp_period = p.limits.timestampPeriod;
  vk.vkGetPhysicalDeviceMemoryProperties(device, &c.memory);
  auto clip = uint64_t(config().test.heap) << 20;
  for (auto& heap : std::span(c.memory.memoryHeaps, c.memory.memoryHeapCount)) {
    if (clip != 0 && heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) {
      heap.size = std::min(heap.size, clip);
    }
  }
}

void query_properties(
    const Vk& vk,
    VkPhysicalDevice device,
    const Extensions& extensions,
    Caps& c) {
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties p11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties p12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceShaderCoreProperties2AMD amd2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceMaintenance4Properties limits{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  bool size_control = has_size_control(c, extensions);
  void** tail = &p.pNext;
  chain(tail, true, p11);
  chain(tail, true, p12);
  chain(tail, size_control, sizes);
  chain(tail, extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME), sm);
  chain(
      tail, extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME), amd);
  chain(
      tail,
      extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME),
      amd2);
  chain(tail, extensions.has(VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME), arm);
  c.external_memory_host =
      extensions.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  chain(tail, c.external_memory_host, host);
  chain(
      tail,
      c.api_version >= VK_API_VERSION_1_3 ||
          extensions.has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME),
      limits);
  vk.vkGetPhysicalDeviceProperties2(device, &p);
  c.driver = std::string(p12.driverName) + " " + p12.driverInfo;
  c.driver_id = p12.driverID;
  c.uuid = hexadecimal(p11.deviceUUID);
  c.subgroup_size = p11.subgroupSize;
  c.min_subgroup_size = size_control ? sizes.minSubgroupSize : c.subgroup_size;
  c.max_subgroup_size = size_control ? sizes.maxSubgroupSize : c.subgroup_size;
  c.subgroup_operations =
      p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT
      ? p11.subgroupSupportedOperations
      : 0;
  c.required_subgroup_size =
      sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
  c.preserve_nan_f32 = p12.shaderSignedZeroInfNanPreserveFloat32;
  c.preserve_denorm_f32 = p12.shaderDenormPreserveFloat32;
  c.host_import_alignment = host.minImportedHostPointerAlignment;
  // Allocations up to maxMemoryAllocationSize never fail for their size alone:
  // NVIDIA reports 4 GiB and allows more. Other drivers return
  // VK_ERROR_OUT_OF_DEVICE_MEMORY.
  c.max_buffer_size =
      limits.maxBufferSize ? limits.maxBufferSize : p11.maxMemoryAllocationSize;
  // At most one vendor's counts are not 0. Without the second structure AMD's
  // count includes disabled units.
  c.core_count = sm.shaderSMCount + arm.shaderCoreCount +
      (amd2.activeComputeUnitCount ? amd2.activeComputeUnitCount
                                   : amd.shaderEngineCount *
               amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray);
}

void query_features(
    const Vk& vk,
    VkPhysicalDevice device,
    const Extensions& extensions,
    Caps& c) {
  DeviceFeatures f(
      {.matrices = extensions.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME),
       .bf16 = extensions.has(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME),
       .dot = extensions.has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME),
       .sizes = has_size_control(c, extensions)});
  vk.vkGetPhysicalDeviceFeatures2(device, &f.all);
#define MLXVK_TAKE(ours, vulkan) c.ours = f.vulkan;
  MLXVK_FEATURES(MLXVK_TAKE)
#undef MLXVK_TAKE
  // Both features are needed, since the kernels use the device scope.
  c.vulkan_memory_model =
      f.f12.vulkanMemoryModel && f.f12.vulkanMemoryModelDeviceScope;
  c.required_subgroup_size &= c.subgroup_size_control;
  c.cooperative_matrix = f.matrices.cooperativeMatrix && c.vulkan_memory_model;
}

void query_dot_products(const Vk& vk, VkPhysicalDevice device, Caps& c) {
  if (!c.integer_dot_product) {
    return;
  }
  VkPhysicalDeviceShaderIntegerDotProductProperties dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  VkPhysicalDeviceProperties2 p{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &dot};
  vk.vkGetPhysicalDeviceProperties2(device, &p);
  c.fast_dot_signed = dot.integerDotProduct4x8BitPackedSignedAccelerated;
  c.fast_dot_mixed =
      dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated;
}

void query_cooperative_matrix(const Vk& vk, VkPhysicalDevice device, Caps& c) {
  // bf16 matrices need their own feature bit, which is kept here meanwhile.
  bool bf16 = std::exchange(c.coopmat_bf16, false) && c.bfloat16;
  if (!c.cooperative_matrix ||
      !vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) {
    return;
  }
  uint32_t n = 0;
  vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &n, nullptr);
  VkCooperativeMatrixPropertiesKHR empty{
      VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
  std::vector<VkCooperativeMatrixPropertiesKHR> shapes(n, empty);
  vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(
      device, &n, shapes.data());
  for (const auto& s : shapes) {
    bool fits = s.AType == s.BType &&
        s.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        s.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        s.scope == VK_SCOPE_SUBGROUP_KHR;
    MatrixShape shape{s.MSize, s.NSize, s.KSize};
    if (fits && s.AType == VK_COMPONENT_TYPE_FLOAT16_KHR) {
      c.listed_f16.push_back(shape);
    } else if (fits && bf16 && s.AType == VK_COMPONENT_TYPE_BFLOAT16_KHR) {
      c.listed_bf16.push_back(shape);
    }
  }
  choose_matrices(c);
}

} // namespace

uint32_t Caps::matrix_subgroup() const {
  if (min_subgroup_size == max_subgroup_size) {
    return subgroup_size;
  }
  // RDNA has 32 and 64; all our matrix kernels support 32.
  bool can = required_subgroup_size && min_subgroup_size <= 32 &&
      max_subgroup_size >= 32;
  return can ? 32 : 0;
}

MatrixUnits Caps::matrices(Type t) const {
  bool half = t == Type::f16 && coopmat_f16;
  bool brain = t == Type::bf16 && coopmat_bf16;
  if (!cooperative_matrix || (!half && !brain)) {
    return {};
  }
  const MatrixShape& shape = half ? shape_f16 : shape_bf16;
  if (emulated_matrices) {
    return {shape.n, shape, true};
  }
  if (shape.usual() || min_subgroup_size == max_subgroup_size) {
    return {matrix_subgroup(), shape};
  }
  // On Intel's matrix units each lane has a column of C.
  bool can = required_subgroup_size && min_subgroup_size <= shape.n &&
      max_subgroup_size >= shape.n;
  return {can ? shape.n : 0, shape};
}

MatrixUnits Caps::half_matrices(Type t) const {
  if (t != Type::bf16 || !half_items || coopmat(t)) {
    return {};
  }
  MatrixUnits units = matrices(Type::f16);
  units.halves = units.lanes != 0;
  return units;
}

void choose_matrices(Caps& c, std::optional<MatrixShape> only) {
  // Alchemist's, in subgroups of 8, were slower by a quarter or more in
  // llama.cpp (https://github.com/ggml-org/llama.cpp/issues/24404).
  constexpr uint32_t intel = 0x8086;
  auto named_only = [&](const MatrixShape& s) {
    return c.vendor_id == intel && s.n < 16;
  };
  auto choose = [&](const std::vector<MatrixShape>& listed,
                    MatrixShape& shape) {
    bool has =
        only && std::find(listed.begin(), listed.end(), *only) != listed.end();
    auto found = !only ? choose_matrix(listed).shape
        : has          ? choose_matrix({&*only, 1}).shape
                       : std::nullopt;
    if (found && !only && named_only(*found)) {
      found.reset();
    }
    shape = found.value_or(MatrixShape{});
    return found.has_value();
  };
  c.coopmat_f16 = choose(c.listed_f16, c.shape_f16);
  c.coopmat_bf16 = choose(c.listed_bf16, c.shape_bf16);
  c.half_items = c.coopmat_f16 && !c.coopmat_bf16;
  constexpr uint32_t nvidia = 0x10de;
  c.known_fragments = c.vendor_id == nvidia && c.matrix_subgroup() == 32 &&
      (c.usual_matrices(Type::f16) || c.usual_matrices(Type::bf16));
}

void emulate_matrices(Caps& c, const MatrixShape& shape) {
  c.listed_f16 = c.listed_bf16 = {shape};
  c.emulated_matrices = c.cooperative_matrix = true;
  choose_matrices(c);
}

void count_cores(Caps& c) {
  if (!c.core_count) {
    c.core_count = cores_by_table(c.vendor_id, c.device_id, c.name);
  }
}

int choose_queue_family(
    const std::vector<VkQueueFamilyProperties>& families,
    uint32_t vendor_id,
    VkPhysicalDeviceType type,
    QueueKind kind) {
  constexpr uint32_t nvidia = 0x10de, amd = 0x1002;
  bool desktop =
      vendor_id == amd && type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  bool alone = kind == QueueKind::Compute ||
      (kind == QueueKind::Automatic && (vendor_id == nvidia || desktop));
  int first = -1;
  for (size_t i = 0; i < families.size(); ++i) {
    auto flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT)) {
      continue;
    }
    if (first < 0) {
      first = static_cast<int>(i);
    }
    if (alone != bool(flags & VK_QUEUE_GRAPHICS_BIT)) {
      return static_cast<int>(i);
    }
  }
  return first;
}

Caps query_caps(const Vk& vk, VkPhysicalDevice device) {
  Caps c;
  query_basics(vk, device, c);
  if (c.api_version < VK_API_VERSION_1_2) {
    return c; // missing_features() says so; newer structures are unknown
  }
  Extensions extensions(vk, device);
  query_properties(vk, device, extensions, c);
  query_features(vk, device, extensions, c);
  query_dot_products(vk, device, c);
  query_cooperative_matrix(vk, device, c);
  count_cores(c);
  c.memory_budget = extensions.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);

  uint32_t n = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, families.data());
  int family =
      choose_queue_family(families, c.vendor_id, c.type, config().test.queue);
  c.compute_queue_family = family;
  if (family >= 0) {
    c.timestamps = families[family].timestampValidBits != 0;
    c.compute_only_queue =
        !(families[family].queueFlags & VK_QUEUE_GRAPHICS_BIT);
  }
  return c;
}

std::vector<std::string> missing_features(const Caps& c) {
  std::vector<std::string> missing;
  auto need = [&](bool ok, const char* name) {
    if (!ok) {
      missing.push_back(name);
    }
  };
  need(c.api_version >= VK_API_VERSION_1_2, "Vulkan 1.2");
  if (!missing.empty()) {
    return missing;
  }
  need(c.buffer_device_address, "bufferDeviceAddress");
  need(c.timeline_semaphore, "timelineSemaphore");
  need(c.scalar_block_layout, "scalarBlockLayout");
  need(c.storage_8bit, "storageBuffer8BitAccess");
  need(c.storage_16bit, "storageBuffer16BitAccess");
  need(c.shader_int8, "shaderInt8");
  need(c.shader_int16, "shaderInt16");
  need(c.shader_int64, "shaderInt64");
  need(
      (c.subgroup_operations & least_subgroup_operations) ==
          least_subgroup_operations,
      "subgroup basic, vote, ballot, shuffle and arithmetic operations");
  need(c.min_subgroup_size >= 4, "a subgroup size of at least 4");
  need(c.compute_queue_family >= 0, "a compute queue");
  need(c.max_workgroup_size >= 256, "workgroups of 256 invocations");
  need(c.shared_memory >= 16384, "16 KiB of shared memory");
  need(c.max_push_constants >= 128, "128 bytes of push constants");
  return missing;
}

const char* type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

const char* driver_name(VkDriverId id) {
  switch (id) {
#define MLXVK_CASE(name)    \
  case VK_DRIVER_ID_##name: \
    return #name
    MLXVK_CASE(AMD_PROPRIETARY);
    MLXVK_CASE(AMD_OPEN_SOURCE);
    MLXVK_CASE(MESA_RADV);
    MLXVK_CASE(NVIDIA_PROPRIETARY);
    MLXVK_CASE(INTEL_OPEN_SOURCE_MESA);
    MLXVK_CASE(IMAGINATION_PROPRIETARY);
    MLXVK_CASE(QUALCOMM_PROPRIETARY);
    MLXVK_CASE(ARM_PROPRIETARY);
    MLXVK_CASE(MESA_LLVMPIPE);
    MLXVK_CASE(MOLTENVK);
    MLXVK_CASE(SAMSUNG_PROPRIETARY);
    MLXVK_CASE(MESA_VENUS);
    MLXVK_CASE(MESA_DOZEN);
    MLXVK_CASE(MESA_TURNIP);
    MLXVK_CASE(MESA_V3DV);
    MLXVK_CASE(MESA_PANVK);
    MLXVK_CASE(MESA_NVK);
    MLXVK_CASE(IMAGINATION_OPEN_SOURCE_MESA);
    MLXVK_CASE(MESA_HONEYKRISP);
#undef MLXVK_CASE
    default:
      return "";
  }
}

namespace {

bool usable(const Caps& c) {
  return missing_features(c).empty();
}

// The usable devices of a type, in the loader's order.
std::vector<int> usable_of(
    const std::vector<Caps>& devices,
    VkPhysicalDeviceType type) {
  std::vector<int> found;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].type == type && usable(devices[i])) {
      found.push_back(static_cast<int>(i));
    }
  }
  return found;
}

// Chooses among `some`, which are of one type and not empty. -1 with `why` set
// if there is a choice that the launcher's variables do not decide.
int by_rank(
    const std::vector<int>& some,
    const Launch& launch,
    std::string& why) {
  if (some.size() > 1 && !launch.why.empty()) {
    why = launch.why;
    return -1;
  }
  return some[launch.local_rank.value_or(0) % some.size()];
}

// Finds a device by index, UUID or part of the name.
int named_device(
    const std::vector<Caps>& devices,
    const std::string& wanted,
    std::string& why) {
  std::string w = lower(wanted);
  bool digits = w.size() < 10 && std::all_of(w.begin(), w.end(), [](char ch) {
                  return std::isdigit(static_cast<unsigned char>(ch));
                });
  std::string bare = w;
  bare.erase(std::remove(bare.begin(), bare.end(), '-'), bare.end());
  for (size_t i = 0; i < devices.size(); ++i) {
    bool match = digits ? std::stoul(w) == i
                        : devices[i].uuid == bare ||
            lower(devices[i].name).find(w) != std::string::npos;
    if (match && usable(devices[i])) {
      return static_cast<int>(i);
    }
    if (match) {
      why = "MLX_VK_DEVICE=" + wanted + " names " + devices[i].name +
          ", which lacks what this backend needs";
      return -1;
    }
  }
  why = "MLX_VK_DEVICE=" + wanted + " names no device";
  return -1;
}

std::string why_no_gpu(const std::vector<Caps>& devices) {
  if (devices.empty()) {
    return "Vulkan lists no device: no GPU driver is installed, or it finds no "
           "GPU";
  }
  for (auto& d : devices) {
    if (d.type != VK_PHYSICAL_DEVICE_TYPE_CPU) {
      return d.name + " lacks " + missing_features(d).front() +
          ", which this backend needs";
    }
  }
  return "Vulkan lists no GPU but " + devices.front().name +
      ", a software device, which is opt-in: MLX_VK_DEVICE=cpu";
}

} // namespace

int choose_device(
    const std::vector<Caps>& devices,
    const std::string& wanted,
    std::string& why,
    const Launch& launch) {
  if (wanted == "cpu") {
    auto some = usable_of(devices, VK_PHYSICAL_DEVICE_TYPE_CPU);
    if (some.empty()) {
      why = "MLX_VK_DEVICE=cpu, but there is no usable software device";
      return -1;
    }
    return by_rank(some, launch, why);
  }
  if (!wanted.empty() && wanted != "auto") {
    return named_device(devices, wanted, why);
  }
  constexpr VkPhysicalDeviceType order[] = {
      VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
      VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
      VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU,
      VK_PHYSICAL_DEVICE_TYPE_OTHER};
  for (auto type : order) {
    if (auto some = usable_of(devices, type); !some.empty()) {
      return by_rank(some, launch, why);
    }
  }
  why = why_no_gpu(devices);
  return -1;
}

std::string list_devices(const std::vector<Caps>& devices) {
  if (devices.empty()) {
    return "  (no Vulkan device)\n";
  }
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto& d = devices[i];
    text += "  " + std::to_string(i) + ": " + d.name + " (" +
        type_name(d.type) + ", uuid " + d.uuid + ")";
    auto missing = missing_features(d);
    for (size_t m = 0; m < missing.size(); ++m) {
      text += (m ? ", " : ", lacks ") + missing[m];
    }
    text += "\n";
  }
  return text;
}

std::vector<const char*> extensions_to_enable(const Caps& c) {
  std::vector<const char*> names;
  auto add = [&](bool has, const char* name) {
    if (has) {
      names.push_back(name);
    }
  };
  add(c.memory_budget, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  add(c.coopmat_f16 || c.coopmat_bf16,
      VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  add(c.subgroup_size_control && c.api_version < VK_API_VERSION_1_3,
      VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  add(c.integer_dot_product && c.api_version < VK_API_VERSION_1_3,
      VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  add(c.external_memory_host, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  add(c.bfloat16, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  return names;
}

} // namespace mlx::core::vulkan
