// Memory, buffers, semaphores and pipelines.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unordered_map>

#include "null/fake_state.h"
#include "pipeline/reflect.h"

namespace fake {

namespace {

FakeBuffer* dedicated_to(const VkMemoryAllocateInfo& info) {
  auto* next = static_cast<const VkBaseInStructure*>(info.pNext);
  for (; next; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO) {
      auto* found =
          reinterpret_cast<const VkMemoryDedicatedAllocateInfo*>(next);
      return object<FakeBuffer>(found->buffer);
    }
  }
  return nullptr;
}

uint64_t memory_size(const FakeBuffer& b) {
  return (b.size + 63) / 64 * 64;
}

VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(
    VkDevice,
    const VkMemoryAllocateInfo* info,
    const VkAllocationCallbacks*,
    VkDeviceMemory* out) {
  auto& s = state();
  std::lock_guard lock(s.mutex);
  auto* dedicated = dedicated_to(*info);
  if (dedicated && info->allocationSize != memory_size(*dedicated)) {
    error("misuse: dedicated memory of another size than its buffer's");
  }
  auto p = memory_properties();
  auto type = p.memoryTypes[info->memoryTypeIndex];
  auto& used = s.statistics.heap_memory[type.heapIndex];
  if (used + info->allocationSize > p.memoryHeaps[type.heapIndex].size) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  auto bytes = [&] {
    void* data = nullptr;
    bool bad = posix_memalign(&data, 4096, info->allocationSize);
    return static_cast<std::byte*>(bad ? nullptr : data);
  };
  auto* data = bytes();
  auto* host = data;
  if (type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
      !(type.propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
    host = bytes();
  }
  if (!data || !host) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  used += info->allocationSize;
  s.statistics.busy_allocations += (s.busy || !s.queue.empty()) &&
      (type.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  s.statistics.allocations++;
  s.statistics.live_memory += info->allocationSize;
  *out = handle<VkDeviceMemory>(
      new Memory{data, info->allocationSize, type, host, false, dedicated});
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
FreeMemory(VkDevice, VkDeviceMemory m, const VkAllocationCallbacks*) {
  if (auto* memory = object<Memory>(m)) {
    std::lock_guard lock(state().mutex);
    state().statistics.live_memory -= memory->size;
    state().statistics.heap_memory[memory->type.heapIndex] -= memory->size;
    if (memory->host != memory->data) {
      std::free(memory->host);
    }
    std::free(memory->data);
    delete memory;
  }
}
VKAPI_ATTR VkResult VKAPI_CALL MapMemory(
    VkDevice,
    VkDeviceMemory m,
    VkDeviceSize offset,
    VkDeviceSize,
    VkMemoryMapFlags,
    void** out) {
  std::lock_guard lock(state().mutex);
  auto* memory = object<Memory>(m);
  bool visible =
      memory->type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  if (!visible || memory->mapped) {
    error("misuse: vkMapMemory of memory that cannot be mapped (again)");
    return VK_ERROR_MEMORY_MAP_FAILED;
  }
  memory->mapped = true;
  *out = memory->host + offset;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL UnmapMemory(VkDevice, VkDeviceMemory m) {
  object<Memory>(m)->mapped = false;
}
// Copies what the ranges name between what the host and what the device sees.
void synchronize(uint32_t n, const VkMappedMemoryRange* ranges, bool to_host) {
  for (uint32_t i = 0; i < n; ++i) {
    auto& r = ranges[i];
    auto* memory = object<Memory>(r.memory);
    uint64_t size = r.size == VK_WHOLE_SIZE ? memory->size - r.offset : r.size;
    bool whole =
        size % non_coherent_atom == 0 || r.offset + size == memory->size;
    if (!memory->mapped || r.offset % non_coherent_atom || !whole ||
        r.offset + size > memory->size) {
      error("misuse: flush or invalidation of a range that is not of atoms");
      continue;
    }
    auto* from = (to_host ? memory->data : memory->host) + r.offset;
    auto* to = (to_host ? memory->host : memory->data) + r.offset;
    if (from != to) {
      std::memcpy(to, from, size);
    }
  }
}
VKAPI_ATTR VkResult VKAPI_CALL FlushMappedMemoryRanges(
    VkDevice,
    uint32_t n,
    const VkMappedMemoryRange* ranges) {
  std::lock_guard lock(state().mutex);
  state().statistics.flushes += n;
  synchronize(n, ranges, false);
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL InvalidateMappedMemoryRanges(
    VkDevice,
    uint32_t n,
    const VkMappedMemoryRange* ranges) {
  std::lock_guard lock(state().mutex);
  state().statistics.invalidations += n;
  synchronize(n, ranges, true);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(
    VkDevice,
    const VkBufferCreateInfo* info,
    const VkAllocationCallbacks*,
    VkBuffer* out) {
  std::lock_guard lock(state().mutex);
  ++state().statistics.live_buffers;
  auto* b = new FakeBuffer;
  b->size = info->size;
  state().statistics.uneven_buffers += info->size % 256 != 0;
  *out = handle<VkBuffer>(b);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyBuffer(VkDevice, VkBuffer handle, const VkAllocationCallbacks*) {
  if (auto* b = object<FakeBuffer>(handle)) {
    std::lock_guard lock(state().mutex);
    --state().statistics.live_buffers;
    if (b->memory) {
      state().buffers.erase(b->address());
    }
    delete b;
  }
}
VKAPI_ATTR void VKAPI_CALL
GetBufferMemoryRequirements(VkDevice, VkBuffer b, VkMemoryRequirements* r) {
  uint32_t types = ((1u << memory_properties().memoryTypeCount) - 1) &
      state().settings.buffer_types;
  *r = {memory_size(*object<FakeBuffer>(b)), 64, types};
}
VKAPI_ATTR void VKAPI_CALL GetBufferMemoryRequirements2(
    VkDevice d,
    const VkBufferMemoryRequirementsInfo2* info,
    VkMemoryRequirements2* r) {
  GetBufferMemoryRequirements(d, info->buffer, &r->memoryRequirements);
}
VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory(
    VkDevice,
    VkBuffer buffer,
    VkDeviceMemory m,
    VkDeviceSize offset) {
  std::lock_guard lock(state().mutex);
  auto* b = object<FakeBuffer>(buffer);
  b->memory = object<Memory>(m);
  b->offset = offset;
  if (auto* only = b->memory->dedicated; only && (only != b || offset)) {
    error("misuse: vkBindBufferMemory with memory dedicated to another buffer");
  }
  state().buffers[b->address()] = b->address() + b->size;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
BindBufferMemory2(VkDevice d, uint32_t n, const VkBindBufferMemoryInfo* info) {
  for (uint32_t i = 0; i < n; ++i) {
    BindBufferMemory(d, info[i].buffer, info[i].memory, info[i].memoryOffset);
  }
  return VK_SUCCESS;
}
VKAPI_ATTR VkDeviceAddress VKAPI_CALL
GetBufferDeviceAddress(VkDevice, const VkBufferDeviceAddressInfo* info) {
  return object<FakeBuffer>(info->buffer)->address();
}

VKAPI_ATTR VkResult VKAPI_CALL CreateSemaphore(
    VkDevice,
    const VkSemaphoreCreateInfo*,
    const VkAllocationCallbacks*,
    VkSemaphore* out) {
  std::lock_guard lock(state().mutex);
  ++state().statistics.live_semaphores;
  *out = handle<VkSemaphore>(new Semaphore);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroySemaphore(VkDevice, VkSemaphore h, const VkAllocationCallbacks*) {
  std::lock_guard lock(state().mutex);
  auto* semaphore = object<Semaphore>(h);
  for (auto& sub : state().queue) {
    if (sub.signal == semaphore) {
      error("misuse: vkDestroySemaphore while a submission signals it");
    }
  }
  state().statistics.live_semaphores -= semaphore != nullptr;
  delete semaphore;
}
VKAPI_ATTR VkResult VKAPI_CALL
GetSemaphoreCounterValue(VkDevice, VkSemaphore h, uint64_t* value) {
  std::lock_guard lock(state().mutex);
  *value = object<Semaphore>(h)->value;
  return state().lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
WaitSemaphores(VkDevice, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  auto& s = state();
  std::unique_lock lock(s.mutex);
  auto* semaphore = object<Semaphore>(info->pSemaphores[0]);
  auto end = std::chrono::system_clock::now() +
      std::chrono::nanoseconds(std::min<uint64_t>(timeout, 1'000'000'000));
  // system_clock: the thread sanitizer does not know timed waits on the other.
  bool done = s.cv.wait_until(lock, end, [&] {
    return semaphore->value >= info->pValues[0] || s.lost;
  });
  return s.lost ? VK_ERROR_DEVICE_LOST : done ? VK_SUCCESS : VK_TIMEOUT;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(
    VkDevice,
    const VkShaderModuleCreateInfo* info,
    const VkAllocationCallbacks*,
    VkShaderModule* out) {
  auto r = mlx::core::vulkan::reflect({info->pCode, info->codeSize / 4}, false);
  *out = handle<VkShaderModule>(new Module{r.local_size[0]});
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyShaderModule(VkDevice, VkShaderModule m, const VkAllocationCallbacks*) {
  delete object<Module>(m);
}
VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineLayout(
    VkDevice,
    const VkPipelineLayoutCreateInfo*,
    const VkAllocationCallbacks*,
    VkPipelineLayout* out) {
  *out = handle<VkPipelineLayout>(new int);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL DestroyPipelineLayout(
    VkDevice,
    VkPipelineLayout l,
    const VkAllocationCallbacks*) {
  delete object<int>(l);
}
LoopConstants loop_constants(const VkSpecializationInfo* info) {
  uint32_t values[3] = {};
  for (uint32_t i = 0; info && i < info->mapEntryCount; ++i) {
    auto& e = info->pMapEntries[i];
    if (e.constantID < 3 && e.size == 4 && e.offset + 4 <= info->dataSize) {
      auto* data = static_cast<const std::byte*>(info->pData);
      std::memcpy(&values[e.constantID], data + e.offset, 4);
    }
  }
  return {uint64_t(values[1]) << 32 | values[0], values[2]};
}
VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(
    VkDevice,
    VkPipelineCache,
    uint32_t n,
    const VkComputePipelineCreateInfo* infos,
    const VkAllocationCallbacks*,
    VkPipeline* out) {
  std::unique_lock lock(state().mutex);
  if (int ms = state().settings.compile_ms) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    lock.lock();
  }
  if (state().pipelines++ == state().settings.fail_pipeline) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  for (uint32_t i = 0; i < n; ++i) {
    ++state().statistics.live_pipelines;
    uint32_t asked = 0;
    for (auto* s = static_cast<const VkBaseInStructure*>(infos[i].stage.pNext);
         s;
         s = s->pNext) {
      if (s->sType ==
          VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO) {
        asked =
            reinterpret_cast<
                const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(s)
                ->requiredSubgroupSize;
      }
    }
    state().statistics.subgroup_size = asked;
    state().statistics.any_subgroup_size = infos[i].stage.flags &
        VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT;
    out[i] = handle<VkPipeline>(new Pipeline{
        object<Module>(infos[i].stage.module)->program,
        loop_constants(infos[i].stage.pSpecializationInfo),
        (infos[i].flags & VK_PIPELINE_CREATE_DISPATCH_BASE_BIT) != 0});
  }
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyPipeline(VkDevice, VkPipeline p, const VkAllocationCallbacks*) {
  std::lock_guard lock(state().mutex);
  state().statistics.live_pipelines -= p != VK_NULL_HANDLE;
  delete object<Pipeline>(p);
}

// The cache's content is the data it was made from and one byte per save.
VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineCache(
    VkDevice,
    const VkPipelineCacheCreateInfo* info,
    const VkAllocationCallbacks*,
    VkPipelineCache* out) {
  auto* data = static_cast<const char*>(info->pInitialData);
  if (info->initialDataSize && data[0] != 'F') {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  *out = handle<VkPipelineCache>(new std::string(
      info->initialDataSize ? data : "F",
      info->initialDataSize ? info->initialDataSize : 1));
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
GetPipelineCacheData(VkDevice, VkPipelineCache c, size_t* size, void* out) {
  auto text = *object<std::string>(c) + "+";
  if (out) {
    std::memcpy(out, text.data(), std::min(*size, text.size()));
  }
  *size = text.size();
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL MergePipelineCaches(
    VkDevice,
    VkPipelineCache to,
    uint32_t n,
    const VkPipelineCache* from) {
  for (uint32_t i = 0; i < n; ++i) {
    *object<std::string>(to) += *object<std::string>(from[i]);
  }
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL DestroyPipelineCache(
    VkDevice,
    VkPipelineCache c,
    const VkAllocationCallbacks*) {
  delete object<std::string>(c);
}

} // namespace

Function object_function(const char* name) {
  static const std::unordered_map<std::string, Function> table = {
      FAKE(AllocateMemory),
      FAKE(FreeMemory),
      FAKE(MapMemory),
      FAKE(UnmapMemory),
      FAKE(FlushMappedMemoryRanges),
      FAKE(BindBufferMemory),
      FAKE(BindBufferMemory2),
      FAKE(GetBufferMemoryRequirements),
      FAKE(GetBufferMemoryRequirements2),
      FAKE(CreateBuffer),
      FAKE(DestroyBuffer),
      FAKE(GetBufferDeviceAddress),
      FAKE(CreateSemaphore),
      FAKE(DestroySemaphore),
      FAKE(GetSemaphoreCounterValue),
      FAKE(WaitSemaphores),
      FAKE(CreateShaderModule),
      FAKE(DestroyShaderModule),
      FAKE(CreatePipelineLayout),
      FAKE(DestroyPipelineLayout),
      FAKE(CreateComputePipelines),
      FAKE(DestroyPipeline),
      FAKE(CreatePipelineCache),
      FAKE(GetPipelineCacheData),
      FAKE(MergePipelineCaches),
      FAKE(DestroyPipelineCache),
      FAKE(InvalidateMappedMemoryRanges),
  };
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

} // namespace fake
