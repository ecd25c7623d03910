// Faults for a program that uses Vulkan, by a seeded schedule: a Vulkan layer
// whose calls fail, and, where the same library is preloaded, files of the
// kernel cache that cannot be written or read. Who controls it calls the C
// functions below; CHAOS_FAULTS ("disk_full=0.5,submit=0.1") and CHAOS_SEED set
// what holds from the start. CHAOS_CARD=MiB[,MiB] shows a device with one heap
// as a card with that much memory of its own, which the host cannot map, and of
// the host's.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

// X(name): what fails, and how.
#define CHAOS_FAULTS(X)                                          \
  X(buffer) /* vkCreateBuffer: out of device memory */           \
  X(memory) /* vkAllocateMemory: out of device memory */         \
  X(shader) /* vkCreateShaderModule: out of host memory */       \
  X(pipeline) /* vkCreateComputePipelines: out of host memory */ \
  X(commands) /* vkAllocateCommandBuffers: out of host memory */ \
  X(begin) /* vkBeginCommandBuffer: out of host memory */        \
  X(end) /* vkEndCommandBuffer: out of device memory */          \
  X(submit) /* vkQueueSubmit: out of host memory */              \
  X(lost_submit) /* vkQueueSubmit: device lost, for good */      \
  X(lost_wait) /* a wait or a look: device lost, for good */     \
  X(drop) /* the submission counts as done, and nothing ran */   \
  X(hang) /* this and later submissions never end */             \
  X(leak) /* a buffer that is destroyed leaves 1 MiB behind */   \
  X(slow_pipeline) /* up to 20 ms later */                       \
  X(slow_submit) /* up to 2 ms later */                          \
  X(disk_open) /* no file can be opened */                       \
  X(disk_full) /* half of what is written, then no space */      \
  X(disk_close) /* an error of what was written before */        \
  X(disk_rename) /* the last step fails */                       \
  X(disk_read) /* an I/O error */

namespace {

using Clock = std::chrono::steady_clock;

enum Fault {
#define CHAOS_ENUM(name) fault_##name,
  CHAOS_FAULTS(CHAOS_ENUM)
#undef CHAOS_ENUM
      fault_count
};

constexpr const char* fault_names[] = {
#define CHAOS_NAME(name) #name,
    CHAOS_FAULTS(CHAOS_NAME)
#undef CHAOS_NAME
};

struct Schedule {
  std::atomic<uint64_t> below{0}; // of 2^32
  std::atomic<uint64_t> asked{0}, met{0};
};
Schedule schedules[fault_count];
std::atomic<uint64_t> state{0};
std::atomic<bool> lost{false}, hung{false};
std::atomic<uint64_t> pipelines{0};

// For each VkDeviceMemory that exists its size in bytes, for each VkBuffer its
// size with a minus. The map is never destroyed, because other threads and
// destructors free memory during exit.
std::mutex sizes_mutex;
auto& sizes = *new std::map<const void*, int64_t>;

// With CHAOS_CARD: what is in use of the card's memory and of the host's, and
// was at most. Under sizes_mutex, as the type of each memory.
int64_t used[2], most_used[2];
auto& types = *new std::map<const void*, uint32_t>;

void set_size(const void* handle, int64_t size) {
  std::lock_guard lock(sizes_mutex);
  sizes[handle] = size;
}

void erase_size(const void* handle) {
  std::lock_guard lock(sizes_mutex);
  sizes.erase(handle);
}

uint64_t random_bits() {
  uint64_t x = state.fetch_add(0x9e3779b97f4a7c15ull) + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Whether this call is to fail.
bool meets(Fault f) {
  auto& s = schedules[f];
  uint64_t below = s.below.load(std::memory_order_relaxed);
  if (below == 0) {
    return false;
  }
  s.asked++;
  if ((random_bits() >> 32) >= below) {
    return false;
  }
  s.met++;
  return true;
}

void delay(Fault f, int most_us) {
  if (meets(f)) {
    auto us = static_cast<int64_t>(random_bits() % most_us);
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
}

int find(const std::string& name) {
  for (int i = 0; i < fault_count; ++i) {
    if (name == fault_names[i]) {
      return i;
    }
  }
  return -1;
}

} // namespace

extern "C" {

// Later calls concerned fail with this probability. False: no such fault.
bool chaos_set(const char* name, double probability) {
  int f = find(name);
  if (f >= 0) {
    schedules[f].below = static_cast<uint64_t>(probability * 4294967296.0);
  }
  return f >= 0;
}

void chaos_seed(uint64_t seed) {
  state = seed;
}

// How often a call failed; ~0: no such fault.
uint64_t chaos_met(const char* name) {
  int f = find(name);
  return f >= 0 ? schedules[f].met.load() : ~uint64_t(0);
}

// Names in turn; null after the last.
const char* chaos_name(int i) {
  return i < fault_count ? fault_names[i] : nullptr;
}

// Returns the bytes of device memory that belong to no buffer.
int64_t chaos_unused_device_memory() {
  std::lock_guard lock(sizes_mutex);
  int64_t sum = 0;
  for (auto& [handle, size] : sizes) {
    sum += size;
  }
  return sum;
}

// Returns the most bytes that were in use of the card's memory (0) or of the
// host's (1) since the last call.
int64_t chaos_most_used(int type) {
  std::lock_guard lock(sizes_mutex);
  int64_t most = most_used[type];
  most_used[type] = used[type];
  return most;
}

// Returns how many pipelines were made.
uint64_t chaos_pipelines() {
  return pipelines;
}

} // extern "C"

namespace {

__attribute__((constructor)) void read_environment() {
  if (const char* seed = std::getenv("CHAOS_SEED")) {
    chaos_seed(std::strtoull(seed, nullptr, 10));
  }
  const char* list = std::getenv("CHAOS_FAULTS");
  for (std::string rest = list ? list : ""; !rest.empty();) {
    auto end = std::min(rest.find(','), rest.size());
    auto word = rest.substr(0, end);
    rest.erase(0, end + 1);
    auto is = word.find('=');
    if (is == word.npos ||
        !chaos_set(word.substr(0, is).c_str(), std::atof(&word[is + 1]))) {
      std::fprintf(stderr, "CHAOS_FAULTS: %s is no fault\n", word.c_str());
      std::abort();
    }
  }
}

// The layer. Handles of one instance or device share their first word.

void* key_of(const void* handle) {
  return *static_cast<void* const*>(handle);
}

struct Below {
  PFN_vkGetInstanceProcAddr instance_proc = nullptr;
  PFN_vkGetDeviceProcAddr device_proc = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  // Asked for when the instance is made: later the loader answers with ours.
  PFN_vkGetPhysicalDeviceMemoryProperties memory_properties = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory_properties2 = nullptr;
};
std::mutex tables_mutex;
std::map<void*, Below>& tables() { // leaked: used at exit
  static auto* all = new std::map<void*, Below>;
  return *all;
}

Below below(const void* handle) {
  std::lock_guard lock(tables_mutex);
  return tables().at(key_of(handle));
}

template <typename F>
F next(const void* handle, const char* name) {
  auto b = below(handle);
  return reinterpret_cast<F>(
      b.device ? b.device_proc(b.device, name)
               : b.instance_proc(b.instance, name));
}
#define NEXT(handle, name) next<PFN_##name>(handle, #name)

template <typename Info>
Info* link_of(const void* chain, VkStructureType type) {
  auto* info = static_cast<const Info*>(chain);
  while (info &&
         (info->sType != type || info->function != VK_LAYER_LINK_INFO)) {
    info = static_cast<const Info*>(info->pNext);
  }
  return const_cast<Info*>(info);
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(
    const VkInstanceCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkInstance* instance) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  Below b;
  b.instance_proc = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = reinterpret_cast<PFN_vkCreateInstance>(
      b.instance_proc(nullptr, "vkCreateInstance"));
  VkResult r = create(info, allocator, instance);
  if (r == VK_SUCCESS) {
    b.instance = *instance;
#define CHAOS_NEXT(f) reinterpret_cast<PFN_##f>(b.instance_proc(*instance, #f))
    b.memory_properties = CHAOS_NEXT(vkGetPhysicalDeviceMemoryProperties);
    b.memory_properties2 = CHAOS_NEXT(vkGetPhysicalDeviceMemoryProperties2);
#undef CHAOS_NEXT
    std::lock_guard lock(tables_mutex);
    tables()[key_of(*instance)] = b;
  }
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(
    VkPhysicalDevice physical,
    const VkDeviceCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkDevice* device) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  Below b;
  b.device_proc = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = NEXT(physical, vkCreateDevice);
  VkResult r = create(physical, info, allocator, device);
  if (r == VK_SUCCESS) {
    b.device = *device;
    std::lock_guard lock(tables_mutex);
    tables()[key_of(*device)] = b;
  }
  return r;
}

// The queue belongs to who submits, and a device that is lost has ended.
std::mutex queue_mutex;

VkResult lose(const void* handle, VkDevice device) {
  {
    std::lock_guard lock(queue_mutex);
    if (!lost) {
      NEXT(handle, vkDeviceWaitIdle)(device);
    }
    lost = true;
  }
  return VK_ERROR_DEVICE_LOST;
}

VkResult look_fails(VkDevice device) {
  return lost || meets(fault_lost_wait) ? lose(device, device) : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(
    VkQueue queue,
    uint32_t count,
    const VkSubmitInfo* submits,
    VkFence fence) {
  delay(fault_slow_submit, 2000);
  if (lost || meets(fault_lost_submit)) {
    return lose(queue, below(queue).device);
  }
  if (meets(fault_submit)) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  if (hung || meets(fault_hang)) {
    hung = true;
    return VK_SUCCESS;
  }
  auto submit = NEXT(queue, vkQueueSubmit);
  std::lock_guard lock(queue_mutex);
  if (lost) { // meanwhile: what is lost runs nothing more
    return VK_ERROR_DEVICE_LOST;
  }
  if (count == 1 && meets(fault_drop)) {
    VkSubmitInfo empty = *submits;
    empty.commandBufferCount = 0;
    return submit(queue, 1, &empty, fence);
  }
  return submit(queue, count, submits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL
counter_value(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  if (VkResult r = look_fails(device); r != VK_SUCCESS) {
    return r;
  }
  return NEXT(device, vkGetSemaphoreCounterValue)(device, semaphore, value);
}

VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(
    VkDevice device,
    const VkSemaphoreWaitInfo* info,
    uint64_t timeout) {
  if (VkResult r = look_fails(device); r != VK_SUCCESS) {
    return r;
  }
  return NEXT(device, vkWaitSemaphores)(device, info, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL device_wait_idle(VkDevice device) {
  if (lost) {
    return VK_ERROR_DEVICE_LOST;
  }
  while (hung) { // as a driver whose device hangs
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return NEXT(device, vkDeviceWaitIdle)(device);
}

VKAPI_ATTR VkResult VKAPI_CALL create_buffer(
    VkDevice device,
    const VkBufferCreateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkBuffer* made) {
  if (meets(fault_buffer)) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  auto result = NEXT(device, vkCreateBuffer)(device, info, allocator, made);
  if (result == VK_SUCCESS) {
    set_size(*made, -static_cast<int64_t>(info->size));
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_buffer(
    VkDevice device,
    VkBuffer buffer,
    const VkAllocationCallbacks* allocator) {
  static std::atomic<void*> kept;
  if (buffer && meets(fault_leak)) {
    kept = std::memset(std::malloc(1 << 20), 1, 1 << 20);
  }
  erase_size(buffer);
  NEXT(device, vkDestroyBuffer)(device, buffer, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(
    VkDevice device,
    VkPipelineCache cache,
    uint32_t count,
    const VkComputePipelineCreateInfo* infos,
    const VkAllocationCallbacks* allocator,
    VkPipeline* made) {
  delay(fault_slow_pipeline, 20'000);
  if (meets(fault_pipeline)) {
    for (uint32_t i = 0; i < count; ++i) {
      made[i] = VK_NULL_HANDLE;
    }
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  pipelines += count;
  return NEXT(device, vkCreateComputePipelines)(
      device, cache, count, infos, allocator, made);
}

// Type 0 becomes the card's memory and 1 the host's; both are the device's
// only type.
int64_t card_bytes() {
  static const char* mib = std::getenv("CHAOS_CARD");
  static const int64_t bytes = mib ? std::atoll(mib) << 20 : 0;
  return bytes;
}

void show_card(VkPhysicalDeviceMemoryProperties& p) {
  if (card_bytes() && p.memoryHeapCount == 1 && p.memoryTypeCount == 1) {
    p.memoryHeapCount = p.memoryTypeCount = 2;
    p.memoryHeaps[1] = {p.memoryHeaps[0].size, 0};
    if (auto* host = std::strchr(std::getenv("CHAOS_CARD"), ',')) {
      p.memoryHeaps[1].size = std::strtoull(host + 1, nullptr, 10) << 20;
    }
    p.memoryHeaps[0].size = card_bytes();
    p.memoryTypes[1] = {
        p.memoryTypes[0].propertyFlags & ~VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        1};
    p.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  }
}

VKAPI_ATTR void VKAPI_CALL memory_properties(
    VkPhysicalDevice device,
    VkPhysicalDeviceMemoryProperties* p) {
  below(device).memory_properties(device, p);
  show_card(*p);
}

VKAPI_ATTR void VKAPI_CALL memory_properties2(
    VkPhysicalDevice device,
    VkPhysicalDeviceMemoryProperties2* p) {
  below(device).memory_properties2(device, p);
  show_card(p->memoryProperties);
  for (auto* next = static_cast<VkBaseOutStructure*>(p->pNext);
       card_bytes() && next;
       next = next->pNext) {
    if (next->sType ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto& b =
          *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next);
      std::lock_guard lock(sizes_mutex);
      b.heapBudget[1] = b.heapBudget[0];
      b.heapUsage[1] = used[1];
      b.heapBudget[0] = card_bytes();
      b.heapUsage[0] = used[0];
    }
  }
}

VKAPI_ATTR void VKAPI_CALL buffer_requirements(
    VkDevice device,
    VkBuffer buffer,
    VkMemoryRequirements* needs) {
  NEXT(device, vkGetBufferMemoryRequirements)(device, buffer, needs);
  needs->memoryTypeBits |= card_bytes() ? 3 : 0;
}

VKAPI_ATTR void VKAPI_CALL buffer_requirements2(
    VkDevice device,
    const VkBufferMemoryRequirementsInfo2* info,
    VkMemoryRequirements2* needs) {
  NEXT(device, vkGetBufferMemoryRequirements2)(device, info, needs);
  needs->memoryRequirements.memoryTypeBits |= card_bytes() ? 3 : 0;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(
    VkDevice device,
    const VkMemoryAllocateInfo* info,
    const VkAllocationCallbacks* allocator,
    VkDeviceMemory* made) {
  if (meets(fault_memory)) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  auto size = static_cast<int64_t>(info->allocationSize);
  uint32_t type = info->memoryTypeIndex;
  auto real = *info;
  if (card_bytes()) {
    real.memoryTypeIndex = 0;
    std::lock_guard lock(sizes_mutex);
    if (type == 0 && used[0] + size > card_bytes()) {
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    used[type] += size;
    most_used[type] = std::max(most_used[type], used[type]);
  }
  auto result = NEXT(device, vkAllocateMemory)(device, &real, allocator, made);
  std::lock_guard lock(sizes_mutex);
  if (result == VK_SUCCESS) {
    sizes[*made] = size;
    types[*made] = type;
  } else if (card_bytes()) {
    used[type] -= size;
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL free_memory(
    VkDevice device,
    VkDeviceMemory memory,
    const VkAllocationCallbacks* allocator) {
  {
    std::lock_guard lock(sizes_mutex);
    if (auto it = types.find(memory); it != types.end() && card_bytes()) {
      used[it->second] -= sizes[memory];
      types.erase(it);
    }
    sizes.erase(memory);
  }
  NEXT(device, vkFreeMemory)(device, memory, allocator);
}

// Calls that do nothing but fail now and then.
#define CHAOS_FAILING(X)                                                      \
  X(shader,                                                                   \
    vkCreateShaderModule,                                                     \
    VK_ERROR_OUT_OF_HOST_MEMORY,                                              \
    (VkDevice d,                                                              \
     const VkShaderModuleCreateInfo* i,                                       \
     const VkAllocationCallbacks* a,                                          \
     VkShaderModule* out),                                                    \
    (d, i, a, out))                                                           \
  X(commands,                                                                 \
    vkAllocateCommandBuffers,                                                 \
    VK_ERROR_OUT_OF_HOST_MEMORY,                                              \
    (VkDevice d, const VkCommandBufferAllocateInfo* i, VkCommandBuffer* out), \
    (d, i, out))                                                              \
  X(begin,                                                                    \
    vkBeginCommandBuffer,                                                     \
    VK_ERROR_OUT_OF_HOST_MEMORY,                                              \
    (VkCommandBuffer d, const VkCommandBufferBeginInfo* i),                   \
    (d, i))                                                                   \
  X(end,                                                                      \
    vkEndCommandBuffer,                                                       \
    VK_ERROR_OUT_OF_DEVICE_MEMORY,                                            \
    (VkCommandBuffer d),                                                      \
    (d))

#define CHAOS_DEFINE(fault, name, result, parameters, arguments) \
  VKAPI_ATTR VkResult VKAPI_CALL failing_##name parameters {     \
    if (meets(fault_##fault)) {                                  \
      return result;                                             \
    }                                                            \
    return NEXT(d, name) arguments;                              \
  }
CHAOS_FAILING(CHAOS_DEFINE)
#undef CHAOS_DEFINE

PFN_vkVoidFunction ours(const char* name) {
  static const std::map<std::string, PFN_vkVoidFunction> all = {
#define CHAOS_ENTRY(name, f) {#name, reinterpret_cast<PFN_vkVoidFunction>(f)}
      CHAOS_ENTRY(vkCreateInstance, create_instance),
      CHAOS_ENTRY(vkCreateDevice, create_device),
      CHAOS_ENTRY(vkQueueSubmit, queue_submit),
      CHAOS_ENTRY(vkAllocateMemory, allocate_memory),
      CHAOS_ENTRY(vkFreeMemory, free_memory),
      CHAOS_ENTRY(vkGetPhysicalDeviceMemoryProperties, memory_properties),
      CHAOS_ENTRY(vkGetPhysicalDeviceMemoryProperties2, memory_properties2),
      CHAOS_ENTRY(vkGetBufferMemoryRequirements, buffer_requirements),
      CHAOS_ENTRY(vkGetBufferMemoryRequirements2, buffer_requirements2),
      CHAOS_ENTRY(vkGetSemaphoreCounterValue, counter_value),
      CHAOS_ENTRY(vkWaitSemaphores, wait_semaphores),
      CHAOS_ENTRY(vkDeviceWaitIdle, device_wait_idle),
      CHAOS_ENTRY(vkCreateBuffer, create_buffer),
      CHAOS_ENTRY(vkDestroyBuffer, destroy_buffer),
      CHAOS_ENTRY(vkCreateComputePipelines, create_pipelines),
#define CHAOS_ITEM(fault, name, ...) CHAOS_ENTRY(name, failing_##name),
      CHAOS_FAILING(CHAOS_ITEM)};
#undef CHAOS_ITEM
#undef CHAOS_ENTRY
  auto it = all.find(name);
  return it == all.end() ? nullptr : it->second;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
device_proc(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  }
  auto f = ours(name);
  return f ? f : below(device).device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
instance_proc(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(instance_proc);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  }
  auto f = ours(name);
  return f || !instance ? f : below(instance).instance_proc(instance, name);
}

} // namespace

extern "C" VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = instance_proc;
  v->pfnGetDeviceProcAddr = device_proc;
  v->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

// The C library, for files of the kernel cache.

namespace {

constexpr int most_files = 1 << 16;
std::atomic<bool> of_cache[most_files];

bool is_entry(int fd) {
  return fd >= 0 && fd < most_files && of_cache[fd];
}

template <typename F>
F libc(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define LIBC(name) libc(&name, #name)

int opened(const char* path, int fd) {
  if (fd >= 0 && fd < most_files) {
    of_cache[fd] = std::strstr(path, ".entry") != nullptr;
  }
  return fd;
}

bool refuses(const char* path, int flags) {
  if ((flags & O_CREAT) && std::strstr(path, ".entry") &&
      meets(fault_disk_open)) {
    errno = EMFILE;
    return true;
  }
  return false;
}

} // namespace

#define CHAOS_OPEN(name)                                                      \
  extern "C" int name(const char* path, int flags, ...) {                     \
    va_list more;                                                             \
    va_start(more, flags);                                                    \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                             \
    static auto real = LIBC(name);                                            \
    return refuses(path, flags) ? -1 : opened(path, real(path, flags, mode)); \
  }
CHAOS_OPEN(open)
CHAOS_OPEN(open64)

extern "C" ssize_t write(int fd, const void* data, size_t size) {
  static auto real = LIBC(write);
  if (is_entry(fd) && meets(fault_disk_full)) {
    if (size > 1 && random_bits() % 2) {
      return real(fd, data, size / 2); // the next call says why
    }
    errno = ENOSPC;
    return -1;
  }
  return real(fd, data, size);
}

extern "C" ssize_t read(int fd, void* data, size_t size) {
  static auto real = LIBC(read);
  if (is_entry(fd) && meets(fault_disk_read)) {
    errno = EIO;
    return -1;
  }
  return real(fd, data, size);
}

extern "C" int close(int fd) {
  static auto real = LIBC(close);
  bool fails = is_entry(fd) && meets(fault_disk_close);
  if (fd >= 0 && fd < most_files) {
    of_cache[fd] = false;
  }
  int r = real(fd);
  if (fails) {
    errno = EIO;
    return -1;
  }
  return r;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static auto real = LIBC(rename);
  if (std::strstr(from, ".entry") && meets(fault_disk_rename)) {
    errno = ENOSPC;
    return -1;
  }
  return real(from, to);
}
