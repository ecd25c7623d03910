#include "runtime/command_writer.h"

#include <algorithm>
#include <cstring>

#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/sentinels.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Unused command buffers that are kept.
constexpr size_t most_free = 32;

constexpr VkAccessFlags device_access = VK_ACCESS_SHADER_READ_BIT |
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
    VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags device_writes =
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags host_access =
    VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
constexpr VkPipelineStageFlags device_stages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

void barrier(
    const Vk& vk,
    VkCommandBuffer commands,
    VkPipelineStageFlags from_stages = device_stages,
    VkAccessFlags from = device_writes,
    VkPipelineStageFlags to_stages = device_stages,
    VkAccessFlags to = device_access) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = from;
  b.dstAccessMask = to;
  vk.vkCmdPipelineBarrier(
      commands, from_stages, to_stages, 0, 1, &b, 0, nullptr, 0, nullptr);
  counters().barriers++;
}

// Orders kernels alone. On RADV's graphics queue it takes two packets; the
// other takes four to six, among them a flush of the colour and depth caches
// and a wait for it. Older copies are ordered by the barriers next to them.
void kernel_barrier(const Vk& vk, VkCommandBuffer commands) {
  constexpr auto stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  barrier(
      vk,
      commands,
      stage,
      VK_ACCESS_SHADER_WRITE_BIT,
      stage,
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

// Whether there is a copy in level `n` or in the one before it.
bool near_copy(const Order& o, const Batch& batch, size_t n) {
  size_t end = n + 1 < o.levels.size() ? o.levels[n + 1] : o.records.size();
  for (size_t i = o.levels[n - 1]; i < end; ++i) {
    if (batch.records[o.records[i]].kind == Record::Kind::Copy) {
      return true;
    }
  }
  return false;
}

} // namespace

CommandWriter::CommandWriter(Device& device) : device_(device) {
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.caps().compute_queue_family;
  vk_check(
      device.vk().vkCreateCommandPool(device.handle(), &info, nullptr, &pool_),
      "vkCreateCommandPool");
}

CommandWriter::~CommandWriter() {
  for (auto& commands : free_) {
    destroy(*commands);
  }
  device_.vk().vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

void CommandWriter::destroy(Commands& c) {
  auto& vk = device_.vk();
  device_.memory().free(c.arguments);
  for (auto event : c.events) {
    vk.vkDestroyEvent(device_.handle(), event, nullptr);
  }
  vk.vkDestroyQueryPool(device_.handle(), c.queries, nullptr);
  if (!c.buffers.empty()) {
    vk.vkFreeCommandBuffers(
        device_.handle(),
        pool_,
        static_cast<uint32_t>(c.buffers.size()),
        c.buffers.data());
  }
}

std::unique_ptr<Commands> CommandWriter::take() {
  std::unique_ptr<Commands> commands;
  std::vector<std::unique_ptr<Commands>> unused;
  {
    std::lock_guard lock(mutex_);
    while (!commands && !free_.empty()) {
      auto last = std::move(free_.back());
      free_.pop_back();
      if (last->unended) {
        unused.push_back(std::move(last));
      } else {
        commands = std::move(last);
      }
    }
    // After a burst of batches, two unused ones are freed for each one taken.
    for (int i = 0; i < 2 && free_.size() > most_free; ++i) {
      unused.push_back(std::move(free_.front()));
      free_.pop_front();
    }
  }
  for (auto& one : unused) {
    destroy(*one);
  }
  return commands ? std::move(commands) : std::make_unique<Commands>();
}

void CommandWriter::give_back(std::unique_ptr<Commands> commands) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(commands));
}

void CommandWriter::place_arguments(const Batch& batch, Commands& c) {
  auto& bytes = batch.arguments;
  if (c.arguments_size < bytes.size()) {
    device_.memory().free(c.arguments);
    c.arguments_size = 0; // if the next call throws
    size_t size = std::max<size_t>(65536, 2 * bytes.size());
    c.arguments = device_.memory().allocate_mapped(size);
    c.arguments_size = size;
  }
  if (!bytes.empty()) {
    std::memcpy(c.arguments.mapped, bytes.data(), bytes.size());
  }
}

void CommandWriter::prepare_queries(size_t records, Commands& c) {
  c.spans = device_.profiler().spans();
  c.timed =
      (c.spans || device_.profiler().timing()) && device_.caps().timestamps;
  if (!c.timed) {
    return;
  }
  auto& vk = device_.vk();
  if (c.query_count < 2 * records || !c.queries) {
    vk.vkDestroyQueryPool(device_.handle(), c.queries, nullptr);
    c.query_count = static_cast<uint32_t>(std::max<size_t>(512, 4 * records));
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = c.query_count;
    vk_check(
        vk.vkCreateQueryPool(device_.handle(), &info, nullptr, &c.queries),
        "vkCreateQueryPool");
  }
  vk.vkCmdResetQueryPool(c.buffer, c.queries, 0, c.query_count);
}

// The device says when the first `done` records are finished.
void CommandWriter::mark(uint32_t done, Commands& c) {
  auto& vk = device_.vk();
  size_t i = c.marks.size();
  if (i == c.events.size()) {
    VkEventCreateInfo info{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event = VK_NULL_HANDLE;
    vk_check(
        vk.vkCreateEvent(device_.handle(), &info, nullptr, &event),
        "vkCreateEvent");
    c.events.push_back(event);
  }
  vk_check(vk.vkResetEvent(device_.handle(), c.events[i]), "vkResetEvent");
  vk.vkCmdSetEvent(c.buffer, c.events[i], device_stages);
  c.marks.push_back(done);
  counters().marks++;
}

uint32_t CommandWriter::done(const Commands& c, uint64_t submissions) const {
  uint32_t done = submissions ? c.ends[submissions - 1] : 0;
  for (size_t i = 0; i < c.marks.size(); ++i) {
    if (device_.vk().vkGetEventStatus(device_.handle(), c.events[i]) !=
        VK_EVENT_SET) {
      break;
    }
    done = std::max(done, c.marks[i]);
  }
  return done;
}

void CommandWriter::write(const Record& r, const Step* step, Commands& c) {
  auto& vk = device_.vk();
  if (r.kind == Record::Kind::Copy) {
    VkBufferCopy region{r.src_offset, r.dst_offset, r.copy_size};
    if (step) {
      region.srcOffset += step->offset;
      region.dstOffset += step->offset;
      region.size = step->size;
    }
    vk.vkCmdCopyBuffer(c.buffer, r.src, r.dst, 1, &region);
    return;
  }
  if (bound_ != r.kernel->pipeline) {
    bound_ = r.kernel->pipeline;
    vk.vkCmdBindPipeline(c.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  VkDeviceAddress address = c.arguments.address + r.args_offset;
  const void* pushed = r.args_in_memory ? static_cast<void*>(&address)
                                        : static_cast<const void*>(r.pushed);
  if (uint32_t size = r.args_in_memory ? 8 : round_up(r.args_size, 4)) {
    vk.vkCmdPushConstants(
        c.buffer,
        device_.pipelines().layout(),
        VK_SHADER_STAGE_COMPUTE_BIT,
        0,
        size,
        pushed);
  }
  if (step && r.parts > 1) {
    auto& [b, n] = step->part;
    vk.vkCmdDispatchBase(c.buffer, b.x, b.y, b.z, n.x, n.y, n.z);
  } else {
    vk.vkCmdDispatch(c.buffer, r.grid.x, r.grid.y, r.grid.z);
  }
}

// The next submission of the batch.
void CommandWriter::begin(const Batch& batch, Commands& c) {
  auto& vk = device_.vk();
  if (c.submissions == c.buffers.size()) {
    VkCommandBufferAllocateInfo info{
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    vk_check(
        vk.vkAllocateCommandBuffers(device_.handle(), &info, &c.buffer),
        "vkAllocateCommandBuffers");
    c.buffers.push_back(c.buffer);
  }
  c.buffer = c.buffers[c.submissions++];
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  vk_check(vk.vkBeginCommandBuffer(c.buffer, &begin), "vkBeginCommandBuffer");
  c.unended = true;
  bound_ = VK_NULL_HANDLE;
  if (c.submissions == 1) {
    prepare_queries(batch.records.size(), c);
  }
}

// Ends a submission after the first `done` records.
void CommandWriter::end(
    uint64_t ticket,
    uint32_t done,
    const Order& o,
    Commands& c) {
  auto& vk = device_.vk();
  if (auto* sentinels = device_.sentinels()) {
    sentinels->append(c.buffer, ticket + c.submissions - 1);
  }
  // The next submission reads and overwrites memory, and the host reads mapped
  // memory after the semaphore. Writes of the host before the submission need
  // no barrier, because vkQueueSubmit makes them visible.
  if (o.last_barrier) {
    barrier(
        vk,
        c.buffer,
        device_stages,
        device_writes,
        device_stages | VK_PIPELINE_STAGE_HOST_BIT,
        device_access | host_access);
  }
  vk_check(vk.vkEndCommandBuffer(c.buffer), "vkEndCommandBuffer");
  c.unended = false;
  c.ends.push_back(done);
}

void CommandWriter::write(
    const Batch& batch,
    bool marks,
    uint64_t ticket,
    Commands& c) {
  auto& vk = device_.vk();
  place_arguments(batch, c);
  OrderDebug debug;
  debug.levels = !config().disabled("levels");
  debug.shuffle = config().debug_shuffle ? ++written_ : 0;
  debug.drop_barrier = config().test.drop_barrier;
  Order o = order(batch.records, batch.accesses, debug);
  auto steps = cut_work(o.records, batch.records, device_.longest_estimate());

  c.submissions = 0;
  c.marks.clear();
  c.ends.clear();
  begin(batch, c);
  bool radv = device_.caps().driver_id == VK_DRIVER_ID_MESA_RADV;
  size_t level = 1;
  auto step = steps.begin();
  for (uint32_t i = 0; i < o.records.size(); ++i) {
    auto cut = [&] {
      end(ticket, i, o, c);
      begin(batch, c);
    };
    bool begins = step != steps.end() && step->cut;
    if (begins) {
      cut();
    }
    if (level < o.levels.size() && o.levels[level] == i) {
      if (!begins) {
        bool kernels = radv && !near_copy(o, batch, level);
        kernels ? kernel_barrier(vk, c.buffer) : barrier(vk, c.buffer);
      }
      ++level;
      if (marks) {
        mark(i, c);
      }
    }
    auto time = [&](VkPipelineStageFlagBits stage, uint32_t query) {
      bool inside = query > 0 && query + 1 < 2 * o.records.size();
      if (c.timed && !(c.spans && inside)) {
        vk.vkCmdWriteTimestamp(c.buffer, stage, c.queries, query);
      }
    };
    const Record& r = batch.records[o.records[i]];
    time(VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 2 * i);
    if (steps.empty()) {
      write(r, nullptr, c);
    } else {
      write(r, &*step, c);
      while (!step++->last) {
        if (step->cut) {
          cut();
        }
        write(r, &*step, c);
      }
    }
    time(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 2 * i + 1);
  }
  end(ticket, static_cast<uint32_t>(o.records.size()), o, c);
  c.order = std::move(o.records);
}

void CommandWriter::report_times(const Batch& batch, const Commands& c) const {
  if (!c.timed || c.order.empty()) {
    return;
  }
  std::vector<uint64_t> ticks(2 * c.order.size());
  auto read = [&](size_t first, size_t count) {
    device_.vk().vkGetQueryPoolResults(
        device_.handle(),
        c.queries,
        static_cast<uint32_t>(first),
        static_cast<uint32_t>(count),
        count * 8,
        &ticks[first],
        8,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  };
  double period = device_.caps().timestamp_period * 1e-9;
  if (c.spans) {
    read(0, 1);
    read(ticks.size() - 1, 1);
    device_.profiler().busy(ticks[0] * period, ticks.back() * period);
    return;
  }
  read(0, ticks.size());
  for (size_t i = 0; i < c.order.size(); ++i) {
    auto& r = batch.records[c.order[i]];
    device_.profiler().kernel(
        {r.kernel ? r.kernel->name : "copy",
         r.kernel && r.kernel->matrix_units,
         r.bytes,
         r.flops},
        ticks[2 * i] * period,
        ticks[2 * i + 1] * period);
  }
}

} // namespace mlx::core::vulkan
