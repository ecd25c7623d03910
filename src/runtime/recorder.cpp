#include "runtime/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "pipeline/cut_loops.h"
#include "pipeline/pipeline.h"
#include "pipeline/reports.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "runtime/sentinels.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

// Expected seconds of submissions on the queue. i915 drops what is not finished
// 20 s after it was queued, and reports no error. Estimates may be too low.
constexpr double most_queued = 4;

void count(const Batch& batch, uint32_t submissions) {
  auto& c = counters();
  c.batches++;
  c.submissions += submissions;
  for (const auto& r : batch.records) {
    (r.kind == Record::Kind::Dispatch ? c.dispatches : c.copies)++;
    if (r.parts > 1) {
      c.splits++;
      if (config().debug_submit) {
        std::fprintf(
            stderr,
            "[mlx-vulkan] split %s of %ux%ux%u workgroups, expected to take "
            "%.3g s, in %u parts\n",
            r.kernel->name.c_str(),
            r.grid.x,
            r.grid.y,
            r.grid.z,
            r.seconds,
            r.parts);
      }
    }
  }
}

} // namespace

Recorder::Recorder(Device& device)
    : device_(device),
      fusions_(device.pipelines(), device.target()),
      writer_(device),
      retirer_(device, writer_) {
  thread_ = std::thread([this] { loop(); });
}

Recorder::~Recorder() {
  stop();
}

void Recorder::push(std::unique_ptr<Batch> batch) {
  pending_.push(std::move(batch));
  wakeup().notify();
}

void Recorder::loop() {
  while (true) {
    // Both are read first, so that a later change is seen in the next turn.
    bool stopping = stopping_;
    auto seen = wakeup().generation();
    submitting_ = true;
    auto* compiling = prepare();
    double queued = gate_ ? retirer_.expected_seconds() : 0;
    auto batch = pending_.take(device_.timeline().lost(), queued);
    bool any = batch != nullptr;
    if (batch) {
      submit(std::move(batch));
    }
    submitting_ = false;
    if (!any && stopping && !compiling) {
      break;
    }
    if (!any) {
      wait_for_more(seen, compiling);
    }
  }
  // The remaining batches wait for events that will never be signalled.
  while (auto batch = pending_.take(true)) {
    batch->completion->set_failed(
        "[vulkan] The device was shut down before this work could start.");
    retirer_.hand_over(batch->pins);
    never_started_.push_back(std::move(batch));
  }
}

// Throws for the first record whose kernel cannot be built, or has other
// arguments.
void Recorder::check_kernels(Batch& batch) {
  for (const auto& r : batch.records) {
    if (r.kernel) {
      device_.pipelines().finish(*r.kernel);
      r.kernel->check_args(r.args_size);
      if (!r.kernel->used.load(std::memory_order_relaxed)) {
        r.kernel->used = batch.new_kernels = true;
      }
    }
  }
}

// Rewrites the batch once its kernels are compiled. Returns whether they are.
bool Recorder::rewrite(Batch& batch) {
  bool waits = batch.awaits && !batch.awaits->settled();
  if (!batch.rewritten && !waits) {
    auto begun = Timeline::Clock::now();
    double begin = device_.profiler().now();
    batch.awaits = fusions_.rewrite(batch);
    batch.rewritten = !batch.awaits;
    count_time(begun, begin, batch);
  }
  return batch.rewritten;
}

// Has the kernels of all batches compiled, without waiting for them: take()
// skips batches whose kernels are missing. Returns a kernel that holds a batch.
const Kernel* Recorder::prepare() {
  const Kernel* compiling = nullptr;
  for (auto [batch, first] : pending_.unprepared()) {
    if (bool is_rewritten = rewrite(*batch); first) {
      batch->prepared = is_rewritten;
      compiling = compiling ? compiling : batch->awaits;
      if (!batch->holds.empty()) {
        gate_ = batch->gate;
        device_.memory().fill_mirrors(*batch);
      }
    }
  }
  return compiling;
}

void Recorder::count_time(
    Timeline::Clock::time_point begun,
    double begin,
    const Batch& batch) {
  counters().record_ns +=
      std::chrono::nanoseconds(Timeline::Clock::now() - begun).count();
  device_.profiler().recorded(
      begin, device_.profiler().now(), batch.records.size());
}

// Waits for notify(), as a kernel that holds a batch is compiled.
void Recorder::wait_for(const Kernel& kernel, uint64_t seen) {
  auto begun = Timeline::Clock::now();
  std::chrono::seconds limit(config().timeout_s);
  limit.count() ? wakeup().wait(seen, limit) : wakeup().wait(seen);
  if (wakeup().generation() == seen) {
    device_.pipelines().report_slow(kernel, limit);
  }
  std::chrono::nanoseconds waited = Timeline::Clock::now() - begun;
  compile_counters().wait_ns += waited.count();
}

// Waits for notify(). While a gate holds a batch it also returns to ask the
// gate.
void Recorder::wait_for_more(uint64_t seen, const Kernel* compiling) {
  auto held = pending_.held_since();
  if (!held) {
    compiling ? wait_for(*compiling, seen) : wakeup().wait(seen);
    return;
  }
  retirer_.retire(); // which may be what the gate waits for
  std::chrono::nanoseconds for_long = Timeline::Clock::now() - *held;
  auto& policy = device_.timeline().policy();
  std::chrono::nanoseconds sleep = policy.interrupts
      ? std::min<std::chrono::nanoseconds>(
            for_long / 8 + std::chrono::microseconds(50),
            std::chrono::milliseconds(1))
      : next_sleep(for_long, policy.spin);
  if (sleep.count() == 0) {
    std::this_thread::yield();
    return;
  }
  wakeup().wait(
      seen, std::chrono::duration_cast<std::chrono::microseconds>(sleep));
}

// Waits until the queue has room for so much work, and the next ticket's
// sentinel a free query.
void Recorder::wait_for_room(double seconds) {
  auto& timeline = device_.timeline();
  while (!queued_.empty()) {
    auto& oldest = queued_.front();
    if (oldest.ticket <= timeline.seen()) {
      queued_seconds_ -= oldest.seconds;
      queued_.pop_front();
      continue;
    }
    bool room = queued_seconds_ + seconds <= most_queued &&
        queued_.size() < Sentinels::count;
    if (room || timeline.lost()) {
      return;
    }
    timeline.wait(
        oldest.ticket,
        Timeline::Clock::now(),
        std::chrono::milliseconds(100),
        true);
  }
  queued_seconds_ = 0;
}

// Submits one command buffer, which signals the next ticket.
void Recorder::submit(
    VkCommandBuffer commands,
    const Batch& batch,
    double seconds) {
  auto& timeline = device_.timeline();
  wait_for_room(seconds);
  if (timeline.lost()) {
    throw std::runtime_error(timeline.lost_reason());
  }
  if (auto* sentinels = device_.sentinels()) {
    sentinels->prepare(next_ticket_);
  }
  VkTimelineSemaphoreSubmitInfo signal{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  signal.signalSemaphoreValueCount = 1;
  signal.pSignalSemaphoreValues = &next_ticket_;
  VkSemaphore semaphore = timeline.semaphore();
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &signal};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  VkResult r = device_.submit_to_queue({&info, 1});
  if (r == VK_ERROR_DEVICE_LOST) {
    timeline.set_lost(
        std::string("vkQueueSubmit: ") + result_name(r) + " with " +
        kernels_of(batch));
  }
  if (r != VK_SUCCESS) {
    vk_check(r, "vkQueueSubmit", " with " + kernels_of(batch));
  }
  queued_.push_back({next_ticket_, seconds});
  queued_seconds_ += seconds;
  next_ticket_++;
}

// Submits the batch. Returns its ticket: that of its last submission.
uint64_t Recorder::start(Batch& batch, Commands& commands) {
  check_kernels(batch);
  writer_.write(batch, retirer_.wants_marks(), next_ticket_, commands);
  double seconds = batch.seconds() / std::max(commands.submissions, 1u);
  for (uint32_t i = 0; i < commands.submissions; ++i) {
    submit(commands.buffers[i], batch, seconds);
  }
  count(batch, commands.submissions);
  return next_ticket_ - 1;
}

// The error of an event that the batch waits for, which fails it; or empty.
std::string Recorder::why_not(const Batch& batch) const {
  for (const auto& point : batch.waits) {
    if (auto e = point.error(); !e.empty()) {
      return e;
    }
  }
  if (batch.follows) {
    if (auto e = batch.follows->error(); !e.empty()) {
      return e;
    }
  }
  if (gate_ && !batch.host_read) {
    if (auto e = gate_->error(); !e.empty()) {
      return e;
    }
  }
  return device_.timeline().lost_reason();
}

// Sets what runs when a submitted batch completes, before its waiters are
// notified.
void Recorder::set_first(Batch& batch) {
  bool invalidates = !batch.invalidations.empty() || before_;
  if (!invalidates && !gate_) {
    return;
  }
  // A waiter that sees this batch done takes all earlier ones for done too.
  batch.completion->set_first([before = std::move(before_),
                               &memory = device_.memory(),
                               all = std::move(batch.invalidations),
                               gate = batch.host_read ? nullptr : gate_,
                               self = batch.completion.get()] {
    if (before) {
      before->run_first();
    }
    for (const auto& a : all) {
      memory.show_to_host(a);
    }
    if (auto e = gate ? gate->error() : std::string(); !e.empty()) {
      self->fail_late(std::move(e));
    }
  });
  before_ = invalidates ? batch.completion : nullptr;
}

bool Recorder::shows_cut_loops(const Batch& batch) const {
  return device_.caps().software() &&
      std::any_of(batch.records.begin(), batch.records.end(), [](auto& r) {
           return r.kernel && r.kernel->shows_cut_loops;
         });
}

void Recorder::submit(std::unique_ptr<Batch> batch) {
  auto& timeline = device_.timeline();
  if (auto error = why_not(*batch); !error.empty()) {
    retirer_.fail(std::move(batch), error);
    return;
  }
  std::unique_ptr<Commands> commands;
  // A batch without records is done when all earlier submissions are.
  const uint64_t before = next_ticket_ - 1;
  uint64_t ticket = before;
  auto clock = Timeline::Clock::now;
  try {
    auto begun = clock();
    double begin = device_.profiler().now();
    device_.memory().show_to_device(*batch);
    if (!batch->records.empty() || ticket == 0) {
      commands = writer_.take();
      ticket = start(*batch, *commands);
    }
    count_time(begun, begin, *batch);
    bool cut = shows_cut_loops(*batch);
    if ((device_.reports() || cut) && commands) {
      // Waits for each batch, so that a report belongs to it. After a minute
      // the watch takes over, and the report is read after the next batch.
      timeline.wait(ticket, clock(), std::chrono::minutes(1));
      if (device_.reports()) {
        device_.reports()->check(batch->call);
      }
      if (cut) {
        device_.cut_loops().check();
      }
    }
  } catch (const std::exception& e) {
    if (next_ticket_ - 1 != before) {
      // The first submissions of the batch are on the queue.
      commands->submissions = static_cast<uint32_t>(next_ticket_ - 1 - before);
      batch->completion->set_failed(e.what());
      commands->timed = false;
      retirer_.add(next_ticket_ - 1, std::move(batch), std::move(commands));
      return;
    }
    if (commands) {
      writer_.give_back(std::move(commands));
    }
    retirer_.fail(std::move(batch), e.what());
    return;
  }
  if (config().debug_submit) {
    std::fprintf(
        stderr,
        "[mlx-vulkan] submit stream %u ticket %llu records %zu submissions "
        "%u, expected to take %.3g ms\n",
        batch->stream_id,
        static_cast<unsigned long long>(ticket),
        batch->records.size(),
        commands ? commands->submissions : 0,
        batch->seconds() * 1e3);
  }
  auto completion = batch->completion;
  set_first(*batch);
  retirer_.add(ticket, std::move(batch), std::move(commands));
  completion->set_submitted(ticket);
}

// Waits for batches that can be submitted now. Those that wait for the host may
// wait for the calling thread.
void Recorder::wait_for_submission(std::chrono::nanoseconds limit) {
  auto begun = Timeline::Clock::now();
  while (std::this_thread::get_id() != thread_.get_id() && !stopping_ &&
         (pending_.ready() || submitting_) &&
         Timeline::Clock::now() - begun < limit) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool Recorder::wait_for_release(
    const std::function<bool(const Buffer&)>& wanted) {
  // Kernels that are being compiled take longer.
  wait_for_submission(std::chrono::milliseconds(1));
  return retirer_.wait_for_release(wanted);
}

void Recorder::finish_submitted() {
  wait_for_submission(std::chrono::nanoseconds::max());
  retirer_.finish_submitted();
}

void Recorder::stop() {
  if (stopping_.exchange(true)) {
    return;
  }
  wakeup().notify();
  thread_.join();
  retirer_.stop();
}

} // namespace mlx::core::vulkan
