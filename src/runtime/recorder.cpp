#include "runtime/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "pipeline/loops.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

struct Recorder::Slot {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  Allocation ring;
  size_t ring_capacity = 0;
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t query_capacity = 0;
  std::vector<const Kernel*> timed; // parallel to pairs of queries
  std::vector<uint64_t> timed_bytes;
  // For the watch: events[i] is set when the first marks[i] records of `order`
  // are done. A mark took 3 to 12 us of an H200 (as a vkCmdFillBuffer too), so
  // that fast devices go without.
  std::vector<VkEvent> events;
  std::vector<uint32_t> order, marks;
};

namespace {

constexpr VkAccessFlags device_access = VK_ACCESS_SHADER_READ_BIT |
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
    VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags device_writes =
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr auto watch_interval = std::chrono::milliseconds(500);
// A batch that follows one as long has marks of progress.
constexpr auto long_batch = std::chrono::seconds(1);
constexpr VkPipelineStageFlags device_stages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

void barrier(
    const Vk& vk,
    VkCommandBuffer commands,
    VkPipelineStageFlags to_stages = device_stages,
    VkAccessFlags to = device_access) {
  VkMemoryBarrier b{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  b.srcAccessMask = device_writes;
  b.dstAccessMask = to;
  vk.vkCmdPipelineBarrier(
      commands, device_stages, to_stages, 0, 1, &b, 0, nullptr, 0, nullptr);
}

} // namespace

// The device says when the first `done` records are finished.
void Recorder::mark(Slot& slot, uint32_t done) {
  auto& vk = device_.vk();
  size_t i = slot.marks.size();
  if (i == slot.events.size()) {
    VkEventCreateInfo info{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event = VK_NULL_HANDLE;
    vk_check(
        vk.vkCreateEvent(device_.handle(), &info, nullptr, &event),
        "vkCreateEvent");
    slot.events.push_back(event);
  }
  vk_check(vk.vkResetEvent(device_.handle(), slot.events[i]), "vkResetEvent");
  vk.vkCmdSetEvent(slot.commands, slot.events[i], device_stages);
  slot.marks.push_back(done);
}

uint32_t Recorder::finished(const Slot& slot) {
  uint32_t done = 0;
  for (size_t i = 0; i < slot.marks.size(); ++i) {
    if (device_.vk().vkGetEventStatus(device_.handle(), slot.events[i]) !=
        VK_EVENT_SET) {
      break;
    }
    done = slot.marks[i];
  }
  return done;
}

Recorder::Recorder(Device& device) : device_(device) {
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.caps().compute_queue_family;
  vk_check(
      device.vk().vkCreateCommandPool(device.handle(), &info, nullptr, &pool_),
      "vkCreateCommandPool");
  set_watch({std::chrono::seconds(config().timeout_s), config().timeout_error});
  record_thread_ = std::thread([this] { record_loop(); });
  retire_thread_ = std::thread([this] { retire_loop(); });
}

Recorder::~Recorder() {
  stop();
  for (auto& left : abandoned_) {
    free_slots_.push_back(std::move(left.slot));
  }
  abandoned_.clear();
  for (auto& slot : free_slots_) {
    device_.memory().free(slot->ring);
    for (auto event : slot->events) {
      device_.vk().vkDestroyEvent(device_.handle(), event, nullptr);
    }
    if (slot->queries) {
      device_.vk().vkDestroyQueryPool(device_.handle(), slot->queries, nullptr);
    }
  }
  device_.vk().vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

void Recorder::push(std::unique_ptr<Batch> batch) {
  auto& w = wakeup();
  {
    std::lock_guard lock(w.mutex);
    static uint64_t sequence = 0; // under the lock
    batch->sequence = sequence++;
    queues_[batch->stream_id].push_back(std::move(batch));
    queued_++;
    w.generation++;
  }
  w.cv.notify_all();
}

// The oldest head of a stream's queue whose waits are over. Under the lock.
std::unique_ptr<Batch> Recorder::next_ready() {
  auto best = queues_.end();
  for (auto it = queues_.begin(); it != queues_.end();) {
    if (it->second.empty()) {
      it = queues_.erase(it);
      continue;
    }
    auto& head = *it->second.front();
    bool ready =
        std::all_of(head.waits.begin(), head.waits.end(), [](auto& point) {
          return point.submitted();
        });
    if ((ready || device_.timeline().lost()) &&
        (best == queues_.end() ||
         head.sequence < best->second.front()->sequence)) {
      best = it;
    }
    ++it;
  }
  if (best == queues_.end()) {
    return nullptr;
  }
  auto batch = std::move(best->second.front());
  best->second.pop_front();
  queued_--;
  return batch;
}

void Recorder::record_loop() {
  auto& w = wakeup();
  std::unique_lock lock(w.mutex);
  while (true) {
    if (auto batch = next_ready()) {
      lock.unlock();
      submit(std::move(batch));
      lock.lock();
      continue;
    }
    if (stopping_) {
      break;
    }
    auto seen = w.generation;
    w.cv.wait(lock, [&] { return w.generation != seen || stopping_; });
  }
  // What still waits for something that will never come.
  for (auto& [id, queue] : queues_) {
    for (auto& batch : queue) {
      batch->completion->set_failed(
          "[vulkan] The device was shut down before this work could start.");
      hand_over_kept(*batch);
    }
  }
}

std::unique_ptr<Recorder::Slot> Recorder::take_slot() {
  {
    std::lock_guard lock(flight_mutex_);
    if (!free_slots_.empty()) {
      auto slot = std::move(free_slots_.back());
      free_slots_.pop_back();
      return slot;
    }
  }
  auto slot = std::make_unique<Slot>();
  VkCommandBufferAllocateInfo info{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  vk_check(
      device_.vk().vkAllocateCommandBuffers(
          device_.handle(), &info, &slot->commands),
      "vkAllocateCommandBuffers");
  return slot;
}

void Recorder::submit(std::unique_ptr<Batch> batch) {
  for (const auto& point : batch->waits) {
    if (auto e = point.error(); !e.empty()) {
      fail(std::move(batch), e);
      return;
    }
  }
  if (device_.timeline().lost()) {
    fail(std::move(batch), device_.timeline().lost_reason());
    return;
  }
  std::unique_ptr<Slot> slot;
  uint64_t ticket = next_ticket_;
  auto clock = std::chrono::steady_clock::now;
  auto begun = clock();
  try {
    double begin = device_.profiler().now();
    if (batch->records.empty() && ticket > 1) {
      // Nothing to run: done when everything submitted before it is.
      ticket--;
    } else {
      slot = take_slot();
      for (const auto& c : batch->host_copies) {
        std::memcpy(c.dst, c.src, c.size);
      }
      record(*batch, *slot);
      VkTimelineSemaphoreSubmitInfo timeline{
          VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
      timeline.signalSemaphoreValueCount = 1;
      timeline.pSignalSemaphoreValues = &ticket;
      VkSemaphore semaphore = device_.timeline().semaphore();
      VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
      info.commandBufferCount = 1;
      info.pCommandBuffers = &slot->commands;
      info.signalSemaphoreCount = 1;
      info.pSignalSemaphores = &semaphore;
      VkResult r =
          device_.vk().vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE);
      if (r != VK_SUCCESS) {
        std::string names;
        for (const auto& record : batch->records) {
          if (record.kernel && names.size() < 200) {
            names += (names.empty() ? "" : ", ") + record.kernel->name;
          }
        }
        if (r == VK_ERROR_DEVICE_LOST) {
          device_.timeline().set_lost(
              std::string("vkQueueSubmit: ") + result_name(r) + " with " +
              names);
        }
        vk_check(r, "vkQueueSubmit", " with " + names);
      }
      next_ticket_++;
      counters_of_submit(*batch);
    }
    counters().record_ns += std::chrono::nanoseconds(clock() - begun).count();
    device_.profiler().recorded(
        begin, device_.profiler().now(), batch->records.size());
    if (device_.loops() && slot) {
      // One batch at a time, so that a report is known to be its own. One that
      // takes a minute is left to the watch, and its report to the next.
      device_.timeline().wait(
          ticket, Timeline::Clock::now(), std::chrono::minutes(1));
      device_.loops()->check();
    }
  } catch (const std::exception& e) {
    if (slot) {
      std::lock_guard lock(flight_mutex_);
      free_slots_.push_back(std::move(slot));
    }
    fail(std::move(batch), e.what());
    return;
  }
  if (config().debug_submit) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] submit stream %u ticket %llu records %zu\n",
        batch->stream_id,
        static_cast<unsigned long long>(ticket),
        batch->records.size());
  }
  auto completion = batch->completion;
  {
    std::lock_guard lock(flight_mutex_);
    in_flight_.push_back(
        {ticket, std::move(batch), std::move(slot), Timeline::Clock::now()});
  }
  completion->set_submitted(ticket);
  flight_cv_.notify_one();
}

void Recorder::fail(std::unique_ptr<Batch> batch, const std::string& error) {
  if (config().debug_submit) {
    std::fprintf(stderr, "[mlx-vulkan] batch failed: %s\n", error.c_str());
  }
  auto completion = batch->completion;
  completion->set_failed(error);
  hand_over_kept(*batch);
  finish({Completion::failed_ticket, std::move(batch), nullptr, {}});
}

// The newest batch on the queue is done last.
void Recorder::hand_over_kept(Batch& batch) {
  std::lock_guard lock(flight_mutex_);
  if (!in_flight_.empty()) {
    batch.hand_over_kept(*in_flight_.back().batch);
  }
}

void Recorder::counters_of_submit(const Batch& batch) {
  auto& c = counters();
  c.batches++;
  for (const auto& r : batch.records) {
    (r.kind == Record::Kind::Dispatch ? c.dispatches : c.copies)++;
  }
}

void Recorder::record(Batch& batch, Slot& slot) {
  const Vk& vk = device_.vk();
  VkCommandBuffer commands = slot.commands;
  auto& records = batch.records;
  size_t n = records.size();

  if (!batch.ring.empty()) {
    if (slot.ring_capacity < batch.ring.size()) {
      device_.memory().free(slot.ring);
      slot.ring_capacity = std::max<size_t>(65536, 2 * batch.ring.size());
      slot.ring = device_.memory().allocate_ring(slot.ring_capacity);
    }
    std::memcpy(slot.ring.mapped, batch.ring.data(), batch.ring.size());
  }

  // Level, then order by level; stable, so that equal levels keep the
  // program's order.
  levels_.resize(n);
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0u);
  if (config().disabled("levels")) {
    std::iota(levels_.begin(), levels_.end(), 0u);
  } else {
    leveler_.clear();
    for (size_t i = 0; i < n; ++i) {
      levels_[i] = leveler_.add(
          {batch.accesses.data() + records[i].first_access,
           records[i].access_count});
    }
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) {
      return levels_[a] < levels_[b];
    });
  }
  // Barrier 0 precedes level 0, barrier k level k, and one more shows all to
  // the host. A level whose barrier the test hook drops joins the one before.
  uint32_t levels = n == 0 ? 0 : levels_[order_.back()] + 1;
  int drop = config().drop_barrier;
  if (drop > 0) {
    for (auto& level : levels_) {
      level -= level >= static_cast<uint32_t>(drop);
    }
  }
  if (config().debug_shuffle) {
    static uint64_t state = 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < n;) {
      size_t end = i + 1;
      while (end < n && levels_[order_[end]] == levels_[order_[i]]) {
        end++;
      }
      for (size_t k = end - 1; k > i; --k) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::swap(order_[k], order_[i + state % (k - i + 1)]);
      }
      i = end;
    }
  }

  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  vk_check(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");

  bool timing = device_.profiler().timing() && device_.caps().timestamps;
  slot.timed.clear();
  slot.timed_bytes.clear();
  if (timing) {
    if (slot.query_capacity < 2 * n) {
      if (slot.queries) {
        vk.vkDestroyQueryPool(device_.handle(), slot.queries, nullptr);
      }
      slot.query_capacity = static_cast<uint32_t>(std::max<size_t>(512, 4 * n));
      VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
      info.queryType = VK_QUERY_TYPE_TIMESTAMP;
      info.queryCount = slot.query_capacity;
      vk_check(
          vk.vkCreateQueryPool(device_.handle(), &info, nullptr, &slot.queries),
          "vkCreateQueryPool");
    }
    vk.vkCmdResetQueryPool(commands, slot.queries, 0, slot.query_capacity);
  }

  slot.marks.clear();
  slot.order.clear();
  bool marks = false;
  {
    std::lock_guard lock(flight_mutex_);
    if (watch_settings_.limit.count() != 0) {
      slot.order = order_;
      marks = device_.caps().software() || config().debug_watch || slow_;
    }
  }

  // Orders this batch after everything submitted before it.
  int barriers = 0;
  if (drop != 0) {
    barrier(vk, commands);
    barriers++;
  }
  VkPipelineLayout layout = device_.pipelines().layout();
  VkPipeline bound = VK_NULL_HANDLE;
  for (size_t i = 0; i < n; ++i) {
    const Record& r = records[order_[i]];
    if (i > 0 && levels_[order_[i]] != levels_[order_[i - 1]]) {
      barrier(vk, commands);
      barriers++;
      if (marks) {
        mark(slot, static_cast<uint32_t>(i));
      }
    }
    if (timing) {
      vk.vkCmdWriteTimestamp(
          commands,
          VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
          slot.queries,
          static_cast<uint32_t>(2 * i));
    }
    if (r.kind == Record::Kind::Copy) {
      VkBufferCopy region{0, 0, r.copy_size};
      vk.vkCmdCopyBuffer(commands, r.src, r.dst, 1, &region);
    } else {
      if (bound != r.kernel->pipeline) {
        bound = r.kernel->pipeline;
        vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound);
      }
      if (r.ring_size) {
        VkDeviceAddress address = slot.ring.address + r.ring_offset;
        vk.vkCmdPushConstants(
            commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, &address);
      } else if (r.push_size) {
        vk.vkCmdPushConstants(
            commands,
            layout,
            VK_SHADER_STAGE_COMPUTE_BIT,
            0,
            (r.push_size + 3) / 4 * 4,
            r.push);
      }
      vk.vkCmdDispatch(commands, r.grid.x, r.grid.y, r.grid.z);
    }
    if (timing) {
      vk.vkCmdWriteTimestamp(
          commands,
          VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
          slot.queries,
          static_cast<uint32_t>(2 * i + 1));
      slot.timed.push_back(r.kernel);
      slot.timed_bytes.push_back(r.bytes);
    }
  }
  // The host reads mapped memory after the semaphore. What the host wrote
  // before the submission needs no barrier: vkQueueSubmit shows it.
  if (drop < 0 || static_cast<uint32_t>(drop) != levels) {
    barrier(
        vk,
        commands,
        VK_PIPELINE_STAGE_HOST_BIT,
        VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    barriers++;
  }
  vk_check(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  counters().barriers += barriers;
}

void Recorder::finish(InFlight done) {
  auto completion = done.batch->completion;
  if (device_.timeline().hung() && done.slot) {
    // The device may still be running it: nothing of it may be freed.
    auto callback = std::move(done.batch->on_retired);
    {
      std::lock_guard lock(flight_mutex_);
      abandoned_.push_back(std::move(done));
    }
    if (callback) {
      callback();
    }
    completion->set_retired();
    return;
  }
  if (done.slot) {
    auto& slot = *done.slot;
    if (!slot.timed.empty() && !device_.timeline().lost()) {
      std::vector<uint64_t> ticks(2 * slot.timed.size());
      device_.vk().vkGetQueryPoolResults(
          device_.handle(),
          slot.queries,
          0,
          static_cast<uint32_t>(ticks.size()),
          ticks.size() * 8,
          ticks.data(),
          8,
          VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
      double period = device_.caps().timestamp_period * 1e-9;
      for (size_t i = 0; i < slot.timed.size(); ++i) {
        device_.profiler().kernel(
            slot.timed[i] ? slot.timed[i]->name : "copy",
            ticks[2 * i] * period,
            ticks[2 * i + 1] * period,
            slot.timed_bytes[i]);
      }
    }
    std::lock_guard lock(flight_mutex_);
    free_slots_.push_back(std::move(done.slot));
  }
  auto callback = std::move(done.batch->on_retired);
  done.batch.reset(); // frees arrays
  if (callback) {
    callback();
  }
  completion->set_retired();
}

void Recorder::retire() {
  uint64_t completed = device_.timeline().poll();
  while (true) {
    InFlight done;
    {
      std::lock_guard lock(flight_mutex_);
      if (in_flight_.empty() ||
          (in_flight_.front().ticket > completed &&
           !device_.timeline().lost())) {
        return;
      }
      done = std::move(in_flight_.front());
      in_flight_.pop_front();
      // Here, as the thread that looks for hangs may be busy for long.
      if (done.slot) {
        slow_ = ran_for(done) >= long_batch;
      }
      last_done_ = Timeline::Clock::now();
      finishing_.push_back(done.ticket);
    }
    uint64_t ticket = done.ticket;
    finish(std::move(done));
    {
      std::lock_guard lock(flight_mutex_);
      auto one = std::find(finishing_.begin(), finishing_.end(), ticket);
      finishing_.erase(one); // a batch without records may have it too
    }
    finished_cv_.notify_all();
  }
}

void Recorder::wait_retired(const Completion& last) {
  // Tickets leave in_flight_ in order, so that those before `last` have.
  last.wait_retired();
  std::unique_lock lock(flight_mutex_);
  finished_cv_.wait(lock, [&] {
    return std::none_of(
        finishing_.begin(), finishing_.end(), [&](uint64_t ticket) {
          return ticket <= last.ticket();
        });
  });
}

// The device runs one batch after the other. A ticket is no measure: a batch
// without records has that of one which may be done for long. Under the lock.
std::chrono::nanoseconds Recorder::ran_for(const InFlight& oldest) const {
  return Timeline::Clock::now() - std::max(oldest.submitted, last_done_);
}

void Recorder::retire_loop() {
  while (true) {
    uint64_t ticket = 0;
    Timeline::Clock::time_point begun;
    {
      std::unique_lock lock(flight_mutex_);
      flight_cv_.wait(
          lock, [this] { return !in_flight_.empty() || stop_retiring_; });
      if (in_flight_.empty()) {
        return;
      }
      ticket = in_flight_.front().ticket;
      begun = Timeline::Clock::now() - ran_for(in_flight_.front());
    }
    device_.timeline().wait(ticket, begun, watch_interval, true);
    retire();
    look_for_hang(ticket);
  }
}

void Recorder::set_watch(WatchSettings settings) {
  std::lock_guard lock(flight_mutex_);
  watch_settings_ = settings;
}

void Recorder::look_for_hang(uint64_t ticket) {
  std::string report;
  bool fails;
  {
    std::lock_guard lock(flight_mutex_);
    if (in_flight_.empty() || in_flight_.front().ticket != ticket ||
        !in_flight_.front().slot) {
      return;
    }
    slow_ |= ran_for(in_flight_.front()) >= long_batch;
    auto& batch = *in_flight_.front().batch;
    auto& slot = *in_flight_.front().slot;
    auto& settings = watch_settings_;
    if (slot.order.empty()) { // closed while there was no watch
      return;
    }
    uint32_t done = finished(slot);
    if (!watch_.hangs(ticket, done, Timeline::Clock::now(), settings.limit)) {
      return;
    }
    fails = settings.fails;
    auto next = std::upper_bound(slot.marks.begin(), slot.marks.end(), done);
    size_t end = next == slot.marks.end() ? slot.order.size() : *next;
    std::vector<WatchedRecord> at;
    for (size_t i = done; i < end; ++i) {
      auto& r = batch.records[slot.order[i]];
      at.push_back({r.kernel ? r.kernel->name : "a copy", r.grid});
    }
    report = describe_hang(
        device_.caps().name,
        batch.stream_id,
        settings.limit,
        done,
        static_cast<uint32_t>(slot.order.size()),
        at);
  }
  std::fprintf(stderr, "%s\n", report.c_str());
  if (fails) {
    device_.timeline().give_up(report);
    retire();
  }
}

void Recorder::stop() {
  auto& w = wakeup();
  {
    std::lock_guard lock(w.mutex);
    if (stopping_) {
      return;
    }
    stopping_ = true;
  }
  w.cv.notify_all();
  record_thread_.join();
  {
    std::lock_guard lock(flight_mutex_);
    stop_retiring_ = true;
  }
  flight_cv_.notify_all();
  retire_thread_.join();
}

} // namespace mlx::core::vulkan
