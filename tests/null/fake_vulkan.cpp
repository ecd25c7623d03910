// Instance, physical device and device.
#include "null/fake_vulkan.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <unordered_map>

#include "null/fake_state.h"

namespace fake {

State& state() {
  static auto* s = new State;
  return *s;
}

void error(const std::string& text) {
  if (state().errors.size() < 50) {
    state().errors.push_back(text);
  }
}

namespace {

VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(
    const VkInstanceCreateInfo*,
    const VkAllocationCallbacks*,
    VkInstance* out) {
  *out = handle<VkInstance>(&singletons[0]);
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceVersion(uint32_t* version) {
  *version = VK_API_VERSION_1_3;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceExtensionProperties(
    const char*,
    uint32_t* n,
    VkExtensionProperties*) {
  *n = 0;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
EnumerateInstanceLayerProperties(uint32_t* n, VkLayerProperties*) {
  *n = 0;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyInstance(VkInstance, const VkAllocationCallbacks*) {}
VKAPI_ATTR VkResult VKAPI_CALL
EnumeratePhysicalDevices(VkInstance, uint32_t* n, VkPhysicalDevice* out) {
  *n = 1;
  if (out) {
    *out = handle<VkPhysicalDevice>(&singletons[1]);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL
GetPhysicalDeviceProperties(VkPhysicalDevice, VkPhysicalDeviceProperties* p) {
  *p = {};
  p->apiVersion = VK_API_VERSION_1_2;
  p->driverVersion = 7;
  p->deviceType = state().settings.discrete
      ? VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
      : VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  std::strcpy(p->deviceName, "Fake GPU");
  auto& l = p->limits;
  l.maxComputeWorkGroupInvocations = 1024;
  l.maxComputeWorkGroupCount[0] = 65535;
  l.maxComputeWorkGroupCount[1] = 65535;
  l.maxComputeWorkGroupCount[2] = 65535;
  l.maxComputeSharedMemorySize = 48 << 10;
  l.maxPushConstantsSize = 128;
  l.timestampPeriod = 1;
  l.bufferImageGranularity = 1;
  l.nonCoherentAtomSize = non_coherent_atom;
  l.maxMemoryAllocationCount = 4096;
}
VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(
    VkPhysicalDevice d,
    VkPhysicalDeviceProperties2* p) {
  GetPhysicalDeviceProperties(d, &p->properties);
  for (auto* s = static_cast<VkBaseOutStructure*>(p->pNext); s; s = s->pNext) {
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
      auto* q = reinterpret_cast<VkPhysicalDeviceVulkan11Properties*>(s);
      q->subgroupSize = 32;
      q->subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
      q->subgroupSupportedOperations = 0xff;
      auto& settings = state().settings;
      q->maxMemoryAllocationSize = settings.max_allocation
          ? settings.max_allocation
          : settings.heap_bytes;
    } else if (
        s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES) {
      auto* q = reinterpret_cast<VkPhysicalDeviceVulkan12Properties*>(s);
      std::strcpy(q->driverName, "fake");
      q->driverID = state().settings.driver;
    } else if (
        s->sType ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES) {
      auto* q =
          reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlProperties*>(s);
      q->minSubgroupSize = q->maxSubgroupSize = 32;
    }
  }
}
VKAPI_ATTR void VKAPI_CALL
GetPhysicalDeviceFeatures2(VkPhysicalDevice, VkPhysicalDeviceFeatures2* f) {
  f->features.shaderInt16 = f->features.shaderInt64 = VK_TRUE;
  for (auto* s = static_cast<VkBaseOutStructure*>(f->pNext); s; s = s->pNext) {
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES) {
      auto* q = reinterpret_cast<VkPhysicalDeviceVulkan11Features*>(s);
      q->storageBuffer16BitAccess = VK_TRUE;
    } else if (
        s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      auto* q = reinterpret_cast<VkPhysicalDeviceVulkan12Features*>(s);
      q->bufferDeviceAddress = q->timelineSemaphore = VK_TRUE;
      q->hostQueryReset = VK_TRUE;
      q->scalarBlockLayout = q->storageBuffer8BitAccess = VK_TRUE;
      q->shaderInt8 = VK_TRUE;
      q->shaderFloat16 = state().settings.float16;
      q->vulkanMemoryModel = VK_TRUE;
      q->vulkanMemoryModelDeviceScope = VK_TRUE;
    } else if (
        s->sType ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES) {
      reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlFeatures*>(s)
          ->subgroupSizeControl = VK_TRUE;
    }
  }
}
VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice,
    VkPhysicalDeviceMemoryProperties* p) {
  *p = memory_properties();
}
VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice,
    VkPhysicalDeviceMemoryProperties2* p) {
  p->memoryProperties = memory_properties();
  auto& s = state();
  std::lock_guard lock(s.mutex);
  for (auto* e = static_cast<VkBaseOutStructure*>(p->pNext); e; e = e->pNext) {
    if (e->sType ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto* q = reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(e);
      ++s.statistics.budget_queries;
      for (size_t i = 0; i < s.settings.budgets.size(); ++i) {
        q->heapBudget[i] = s.settings.budgets[i];
        q->heapUsage[i] = s.statistics.heap_memory[i];
      }
    }
  }
}
VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice,
    uint32_t* n,
    VkQueueFamilyProperties* p) {
  *n = 1;
  if (p) {
    *p = {};
    p->queueFlags = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    p->queueCount = 1;
    p->timestampValidBits = 64;
  }
}
VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(
    VkPhysicalDevice,
    const char*,
    uint32_t* n,
    VkExtensionProperties* out) {
  std::vector<const char*> names;
  if (!state().settings.budgets.empty()) {
    names.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  }
  if (state().settings.size_control) {
    names.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  *n = static_cast<uint32_t>(names.size());
  for (size_t i = 0; out && i < names.size(); ++i) {
    std::strcpy(out[i].extensionName, names[i]);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(
    VkPhysicalDevice,
    const VkDeviceCreateInfo*,
    const VkAllocationCallbacks*,
    VkDevice* out) {
  auto& s = state();
  {
    std::lock_guard lock(s.mutex);
    s.stop = s.lost = false;
  }
  s.thread = std::thread(queue_loop);
  *out = handle<VkDevice>(&singletons[2]);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyDevice(VkDevice, const VkAllocationCallbacks*) {
  auto& s = state();
  {
    std::lock_guard lock(s.mutex);
    if (!s.queue.empty()) {
      error("misuse: vkDestroyDevice with work in flight");
    }
    s.stop = true;
  }
  s.cv.notify_all();
  s.thread.join();
}
VKAPI_ATTR void VKAPI_CALL
GetDeviceQueue(VkDevice, uint32_t, uint32_t, VkQueue* out) {
  *out = handle<VkQueue>(&singletons[3]);
}
VKAPI_ATTR VkResult VKAPI_CALL DeviceWaitIdle(VkDevice) {
  auto& s = state();
  while (true) {
    {
      std::lock_guard lock(s.mutex);
      if (s.queue.empty() && !s.busy) {
        return VK_SUCCESS;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// For functions that must exist but are never called.
VKAPI_ATTR VkResult VKAPI_CALL Unused() {
  std::abort();
}

PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice, const char* name) {
  return get_instance_proc_addr(VK_NULL_HANDLE, name);
}

} // namespace

VkPhysicalDeviceMemoryProperties memory_properties() {
  constexpr auto host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr auto local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr auto cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  auto& settings = state().settings;
  uint64_t heap = settings.heap_bytes;
  auto types = settings.types;
  auto heaps = settings.heaps;
  if (types.empty() && settings.discrete) {
    types = {{local, 0}, {host | cached, 1}, {local | host, 0}};
    heaps = {{heap, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}, {heap, 0}};
  } else if (types.empty()) {
    types = {{VkMemoryPropertyFlags(local | host | cached), 0}};
    heaps = {{heap, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}};
  }
  VkPhysicalDeviceMemoryProperties p{};
  p.memoryTypeCount = uint32_t(types.size());
  p.memoryHeapCount = uint32_t(heaps.size());
  std::copy(types.begin(), types.end(), p.memoryTypes);
  std::copy(heaps.begin(), heaps.end(), p.memoryHeaps);
  return p;
}

PFN_vkVoidFunction VKAPI_CALL
get_instance_proc_addr(VkInstance, const char* name) {
  static const std::unordered_map<std::string, Function> table = {
      FAKE(CreateInstance),
      FAKE(EnumerateInstanceVersion),
      FAKE(EnumerateInstanceExtensionProperties),
      FAKE(EnumerateInstanceLayerProperties),
      FAKE(DestroyInstance),
      FAKE(EnumeratePhysicalDevices),
      FAKE(GetPhysicalDeviceProperties),
      FAKE(GetPhysicalDeviceProperties2),
      FAKE(GetPhysicalDeviceFeatures2),
      FAKE(GetPhysicalDeviceMemoryProperties),
      FAKE(GetPhysicalDeviceMemoryProperties2),
      FAKE(GetPhysicalDeviceQueueFamilyProperties),
      FAKE(EnumerateDeviceExtensionProperties),
      FAKE(CreateDevice),
      FAKE(GetDeviceProcAddr),
      FAKE(DestroyDevice),
      FAKE(GetDeviceQueue),
      FAKE(DeviceWaitIdle),
  };
  auto it = table.find(name);
  if (it != table.end()) {
    return it->second;
  }
  for (auto find : {command_function, object_function}) {
    if (auto f = find(name)) {
      return f;
    }
  }
  std::string_view n = name;
  if (n.ends_with("KHR") || n.ends_with("EXT") || n.ends_with("NV")) {
    return nullptr;
  }
  return reinterpret_cast<PFN_vkVoidFunction>(Unused);
}

void reset(Settings settings) {
  auto& s = state();
  std::lock_guard lock(s.mutex);
  s.settings = settings;
  s.statistics = {};
  s.errors.clear();
  s.unordered.clear();
  s.unflushed = s.held = s.lost = false;
  s.submits = s.pipelines = 0;
  s.random.seed(settings.seed);
}

Settings& settings() {
  return state().settings;
}

std::vector<std::string> errors() {
  std::lock_guard lock(state().mutex);
  return state().errors;
}

void clear_errors() {
  std::lock_guard lock(state().mutex);
  state().errors.clear();
}

Statistics statistics() {
  std::lock_guard lock(state().mutex);
  return state().statistics;
}

void hold(bool held) {
  {
    std::lock_guard lock(state().mutex);
    state().held = held;
  }
  state().cv.notify_all();
}

} // namespace fake
