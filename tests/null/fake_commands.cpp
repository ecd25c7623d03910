// Command buffers and submission.
#include <algorithm>
#include <unordered_map>

#include "null/fake_state.h"

namespace fake {

namespace {

VKAPI_ATTR VkResult VKAPI_CALL
QueueSubmit(VkQueue, uint32_t n, const VkSubmitInfo* infos, VkFence) {
  auto& s = state();
  std::lock_guard lock(s.mutex);
  if (s.submits++ == s.settings.fail_submit) {
    s.lost |= s.settings.submit_result == VK_ERROR_DEVICE_LOST;
    for (; s.lost && !s.queue.empty(); s.queue.pop_front()) {
      for (auto* b : s.queue.front().buffers) {
        --b->pending; // never runs
      }
    }
    return s.settings.submit_result;
  }
  if (s.lost) {
    return VK_ERROR_DEVICE_LOST;
  }
  for (uint32_t i = 0; i < n; ++i) {
    Submission sub;
    sub.dropped = s.submits - 1 == s.settings.drop_submit;
    if (infos[i].waitSemaphoreCount != 0) {
      error("misuse: the queue waits on a semaphore");
    }
    for (uint32_t k = 0; k < infos[i].commandBufferCount; ++k) {
      auto* b = object<CommandBuffer>(infos[i].pCommandBuffers[k]);
      if (b->state != CommandBuffer::Executable || b->pending) {
        error("misuse: a command buffer that is not executable");
      }
      ++b->pending;
      uint64_t dispatches =
          std::count_if(b->commands.begin(), b->commands.end(), [](auto& c) {
            return c.kind == Command::Dispatch;
          });
      auto last =
          std::find_if(b->commands.rbegin(), b->commands.rend(), [](auto& c) {
            return c.kind != Command::Barrier;
          });
      s.statistics.sentinels += last != b->commands.rend() && last->after_all;
      auto& most = s.statistics.most_dispatches;
      most = std::max(most, dispatches);
      sub.buffers.push_back(b);
    }
    if (infos[i].signalSemaphoreCount) {
      sub.signal = object<Semaphore>(infos[i].pSignalSemaphores[0]);
      auto* t =
          static_cast<const VkTimelineSemaphoreSubmitInfo*>(infos[i].pNext);
      sub.value = t->pSignalSemaphoreValues[0];
    }
    s.queue.push_back(std::move(sub));
    ++s.statistics.submits;
  }
  s.cv.notify_all();
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateCommandPool(
    VkDevice,
    const VkCommandPoolCreateInfo*,
    const VkAllocationCallbacks*,
    VkCommandPool* out) {
  std::lock_guard lock(state().mutex);
  ++state().statistics.live_command_pools;
  *out = handle<VkCommandPool>(new Pool);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyCommandPool(VkDevice, VkCommandPool p, const VkAllocationCallbacks*) {
  std::lock_guard lock(state().mutex);
  --state().statistics.live_command_pools;
  for (auto* b : object<Pool>(p)->buffers) {
    if (b->pending) {
      error("misuse: vkDestroyCommandPool with a pending command buffer");
    }
    delete b;
  }
  state().statistics.live_command_buffers -= object<Pool>(p)->buffers.size();
  delete object<Pool>(p);
}
VKAPI_ATTR VkResult VKAPI_CALL AllocateCommandBuffers(
    VkDevice,
    const VkCommandBufferAllocateInfo* info,
    VkCommandBuffer* out) {
  auto* pool = object<Pool>(info->commandPool);
  for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
    pool->buffers.push_back(new CommandBuffer);
    out[i] = handle<VkCommandBuffer>(pool->buffers.back());
  }
  std::lock_guard lock(state().mutex);
  state().statistics.live_command_buffers += info->commandBufferCount;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL FreeCommandBuffers(
    VkDevice,
    VkCommandPool p,
    uint32_t count,
    const VkCommandBuffer* buffers) {
  std::lock_guard lock(state().mutex);
  for (uint32_t i = 0; i < count; ++i) {
    auto* b = object<CommandBuffer>(buffers[i]);
    if (b->pending) {
      error("misuse: vkFreeCommandBuffers with a pending command buffer");
    }
    std::erase(object<Pool>(p)->buffers, b);
    delete b;
  }
  state().statistics.live_command_buffers -= count;
}
VKAPI_ATTR VkResult VKAPI_CALL
ResetCommandBuffer(VkCommandBuffer h, VkCommandBufferResetFlags) {
  auto* b = object<CommandBuffer>(h);
  if (b->pending) {
    std::lock_guard lock(state().mutex);
    error("misuse: reset of a pending command buffer");
    return VK_SUCCESS;
  }
  b->state = CommandBuffer::Initial;
  b->commands.clear();
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
BeginCommandBuffer(VkCommandBuffer h, const VkCommandBufferBeginInfo*) {
  auto* b = object<CommandBuffer>(h);
  if (b->state == CommandBuffer::Recording) {
    std::lock_guard lock(state().mutex);
    error("misuse: vkBeginCommandBuffer of a command buffer that records");
  }
  ResetCommandBuffer(h, 0);
  b->state = CommandBuffer::Recording;
  b->program = 0;
  b->barriers = 0;
  std::fill(b->push.begin(), b->push.end(), std::byte(0xee));
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL EndCommandBuffer(VkCommandBuffer h) {
  {
    std::lock_guard lock(state().mutex);
    if (settings().fail_end-- == 0) {
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
  }
  object<CommandBuffer>(h)->state = CommandBuffer::Executable;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
CmdBindPipeline(VkCommandBuffer h, VkPipelineBindPoint, VkPipeline p) {
  object<CommandBuffer>(h)->program = object<Pipeline>(p)->program;
  object<CommandBuffer>(h)->loops = object<Pipeline>(p)->loops;
  object<CommandBuffer>(h)->takes_base = object<Pipeline>(p)->takes_base;
}
VKAPI_ATTR void VKAPI_CALL CmdPushConstants(
    VkCommandBuffer h,
    VkPipelineLayout,
    VkShaderStageFlags,
    uint32_t offset,
    uint32_t size,
    const void* data) {
  auto* b = object<CommandBuffer>(h);
  if (size == 0 || size % 4 || offset % 4 || offset + size > 128) {
    std::lock_guard lock(state().mutex);
    error("misuse: push constants of " + std::to_string(size) + " bytes");
    return;
  }
  std::memcpy(b->push.data() + offset, data, size);
}
VKAPI_ATTR void VKAPI_CALL CmdDispatchBase(
    VkCommandBuffer h,
    uint32_t bx,
    uint32_t by,
    uint32_t bz,
    uint32_t x,
    uint32_t y,
    uint32_t z) {
  auto* b = object<CommandBuffer>(h);
  Command c{Command::Dispatch};
  c.program = b->program;
  c.push = b->push;
  c.loops = b->loops;
  auto& s = state();
  std::lock_guard lock(s.mutex);
  uint32_t base[] = {bx, by, bz}, groups[] = {x, y, z};
  uint64_t all = 1;
  for (int d = 0; d < 3; ++d) {
    c.base[d] = base[d];
    c.groups[d] = groups[d];
    all *= groups[d];
    if (base[d] + uint64_t(groups[d]) > 65535) {
      error("misuse: a dispatch beyond the largest grid");
      return;
    }
  }
  if (!c.program || !all) {
    error("misuse: a dispatch without pipeline or workgroups");
    return;
  }
  if ((bx || by || bz) && !b->takes_base) {
    error("misuse: a base for a pipeline that takes none");
    return;
  }
  ++s.statistics.dispatches;
  s.statistics.most_groups = std::max(s.statistics.most_groups, all);
  b->commands.push_back(std::move(c));
}
VKAPI_ATTR void VKAPI_CALL
CmdDispatch(VkCommandBuffer h, uint32_t x, uint32_t y, uint32_t z) {
  CmdDispatchBase(h, 0, 0, 0, x, y, z);
}
VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(
    VkCommandBuffer h,
    VkBuffer from,
    VkBuffer to,
    uint32_t n,
    const VkBufferCopy* regions) {
  std::lock_guard lock(state().mutex);
  for (uint32_t i = 0; i < n; ++i) {
    auto& r = regions[i];
    auto* src = object<FakeBuffer>(from);
    auto* dst = object<FakeBuffer>(to);
    if (!r.size || r.srcOffset + r.size > src->size ||
        r.dstOffset + r.size > dst->size) {
      error("misuse: vkCmdCopyBuffer outside of a buffer");
      continue;
    }
    Command c{Command::Copy};
    c.from = src->address() + r.srcOffset;
    c.to = dst->address() + r.dstOffset;
    c.size = r.size;
    ++state().statistics.copies;
    auto& most = state().statistics.most_copied;
    most = std::max(most, c.size);
    object<CommandBuffer>(h)->commands.push_back(std::move(c));
  }
}
VKAPI_ATTR VkResult VKAPI_CALL CreateEvent(
    VkDevice,
    const VkEventCreateInfo*,
    const VkAllocationCallbacks*,
    VkEvent* out) {
  std::lock_guard lock(state().mutex);
  ++state().statistics.live_events;
  *out = handle<VkEvent>(new Event);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyEvent(VkDevice, VkEvent e, const VkAllocationCallbacks*) {
  std::lock_guard lock(state().mutex);
  --state().statistics.live_events;
  delete object<Event>(e);
}
VKAPI_ATTR VkResult VKAPI_CALL GetEventStatus(VkDevice, VkEvent e) {
  return object<Event>(e)->set ? VK_EVENT_SET : VK_EVENT_RESET;
}
VKAPI_ATTR VkResult VKAPI_CALL ResetEvent(VkDevice, VkEvent e) {
  object<Event>(e)->set = false;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
CmdSetEvent(VkCommandBuffer h, VkEvent e, VkPipelineStageFlags) {
  Command c{Command::SetEvent};
  c.event = object<Event>(e);
  {
    std::lock_guard lock(state().mutex);
    ++state().statistics.marks;
  }
  object<CommandBuffer>(h)->commands.push_back(std::move(c));
}
VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier(
    VkCommandBuffer h,
    VkPipelineStageFlags from,
    VkPipelineStageFlags to,
    VkDependencyFlags,
    uint32_t n,
    const VkMemoryBarrier* barriers,
    uint32_t,
    const VkBufferMemoryBarrier*,
    uint32_t,
    const VkImageMemoryBarrier*) {
  auto* b = object<CommandBuffer>(h);
  std::lock_guard lock(state().mutex);
  bool drop = b->barriers++ == state().settings.drop_barrier;
  constexpr VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
  Command c{Command::Barrier};
  c.kernels_only = !((from | to) & transfer);
  VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT;
  VkAccessFlags reads = VK_ACCESS_SHADER_READ_BIT;
  if (!c.kernels_only) {
    work |= transfer;
    writes |= VK_ACCESS_TRANSFER_WRITE_BIT;
    reads |= VK_ACCESS_TRANSFER_READ_BIT;
  }
  VkAccessFlags src = n ? barriers->srcAccessMask : 0;
  VkAccessFlags dst = n ? barriers->dstAccessMask : 0;
  bool full = (from & work) == work && (src & writes) == writes;
  c.to_device =
      (to & work) == work && (dst & (reads | writes)) == (reads | writes);
  c.to_host =
      (to & VK_PIPELINE_STAGE_HOST_BIT) && (dst & VK_ACCESS_HOST_READ_BIT);
  if (!full || (!c.to_device && !c.to_host)) {
    error("misuse: a barrier that orders nothing");
    return;
  }
  ++state().statistics.barriers;
  state().statistics.kernel_barriers += c.kernels_only;
  if (!drop) {
    b->commands.push_back(std::move(c));
  }
}
VKAPI_ATTR void VKAPI_CALL
CmdResetQueryPool(VkCommandBuffer, VkQueryPool, uint32_t, uint32_t) {}
VKAPI_ATTR void VKAPI_CALL
ResetQueryPool(VkDevice, VkQueryPool q, uint32_t first, uint32_t n) {
  auto& values = object<Queries>(q)->values;
  for (uint32_t i = first; i < first + n; ++i) {
    std::atomic_ref(values.at(i)).store(0);
  }
}
VKAPI_ATTR void VKAPI_CALL CmdWriteTimestamp(
    VkCommandBuffer h,
    VkPipelineStageFlagBits stage,
    VkQueryPool q,
    uint32_t index) {
  Command c{Command::Timestamp};
  c.after_all = stage == VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  c.query = &object<Queries>(q)->values.at(index);
  object<CommandBuffer>(h)->commands.push_back(std::move(c));
}
VKAPI_ATTR VkResult VKAPI_CALL CreateQueryPool(
    VkDevice,
    const VkQueryPoolCreateInfo* info,
    const VkAllocationCallbacks*,
    VkQueryPool* out) {
  *out =
      handle<VkQueryPool>(new Queries{std::vector<uint64_t>(info->queryCount)});
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL
DestroyQueryPool(VkDevice, VkQueryPool q, const VkAllocationCallbacks*) {
  delete object<Queries>(q);
}
VKAPI_ATTR VkResult VKAPI_CALL GetQueryPoolResults(
    VkDevice,
    VkQueryPool q,
    uint32_t first,
    uint32_t n,
    size_t,
    void* data,
    VkDeviceSize,
    VkQueryResultFlags) {
  auto& values = object<Queries>(q)->values;
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t time = std::atomic_ref(values.at(first + i)).load();
    if (!time || !state().settings.shows_queries) {
      return VK_NOT_READY;
    }
    static_cast<uint64_t*>(data)[i] = time;
  }
  return VK_SUCCESS;
}

} // namespace

Function command_function(const char* name) {
  static const std::unordered_map<std::string, Function> table = {
      FAKE(QueueSubmit),         FAKE(CreateCommandPool),
      FAKE(DestroyCommandPool),  FAKE(AllocateCommandBuffers),
      FAKE(FreeCommandBuffers),  FAKE(BeginCommandBuffer),
      FAKE(EndCommandBuffer),    FAKE(ResetCommandBuffer),
      FAKE(CmdBindPipeline),     FAKE(CmdPushConstants),
      FAKE(CmdDispatch),         FAKE(CmdCopyBuffer),
      FAKE(CreateEvent),         FAKE(DestroyEvent),
      FAKE(GetEventStatus),      FAKE(ResetEvent),
      FAKE(CmdSetEvent),         FAKE(CmdPipelineBarrier),
      FAKE(CmdDispatchBase),     FAKE(ResetQueryPool),
      FAKE(CmdResetQueryPool),   FAKE(CmdWriteTimestamp),
      FAKE(CreateQueryPool),     FAKE(DestroyQueryPool),
      FAKE(GetQueryPoolResults),
  };
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

} // namespace fake
