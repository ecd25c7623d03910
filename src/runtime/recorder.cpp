#include "runtime/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>

#include "pipeline/loops.h"
#include "pipeline/pipeline.h"
#include "runtime/device.h"
#include "runtime/profile.h"
#include "vk/config.h"

namespace mlx::core::vulkan {

namespace {

void count(const Batch& batch) {
  auto& c = counters();
  c.batches++;
  for (const auto& r : batch.records) {
    (r.kind == Record::Kind::Dispatch ? c.dispatches : c.copies)++;
  }
}

std::string kernels_of(const Batch& batch) {
  std::string names;
  for (const auto& record : batch.records) {
    if (record.kernel && names.size() < 200) {
      names += (names.empty() ? "" : ", ") + record.kernel->name;
    }
  }
  return names;
}

} // namespace

Recorder::Recorder(Device& device)
    : device_(device),
      fusions_(device.pipelines()),
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
    // Both before the look: what happens meanwhile is seen at the next.
    bool stopping = stopping_;
    auto seen = wakeup().generation();
    if (auto batch = pending_.take(device_.timeline().lost())) {
      submit(std::move(batch));
    } else if (stopping) {
      break;
    } else {
      wakeup().wait(seen);
    }
  }
  // What still waits for something that will never come.
  while (auto batch = pending_.take(true)) {
    batch->completion->set_failed(
        "[vulkan] The device was shut down before this work could start.");
    retirer_.hand_over(batch->keeper);
    never_started_.push_back(std::move(batch));
  }
}

// What the encoder did not wait for. Throws for the first record whose kernel
// cannot be built, or has other arguments.
void Recorder::finish_kernels(const Batch& batch) {
  using Clock = Timeline::Clock;
  std::optional<Clock::time_point> begun;
  for (const auto& r : batch.records) {
    if (!r.kernel) {
      continue;
    }
    if (!r.kernel->built()) {
      begun = begun ? begun : Clock::now();
      device_.pipelines().finish(*r.kernel);
    }
    r.kernel->check_args(r.args_size);
  }
  if (begun) {
    compile_counters().wait_ns +=
        std::chrono::nanoseconds(Clock::now() - *begun).count();
  }
}

// The ticket of the batch, which is on the queue.
uint64_t Recorder::start(const Batch& batch, Commands& commands) {
  finish_kernels(batch);
  for (const auto& c : batch.host_copies) {
    std::memcpy(c.dst, c.src, c.size);
  }
  writer_.write(batch, retirer_.wants_marks(), commands);
  VkTimelineSemaphoreSubmitInfo timeline{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &next_ticket_;
  VkSemaphore semaphore = device_.timeline().semaphore();
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands.buffer;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  VkResult r =
      device_.vk().vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE);
  if (r == VK_ERROR_DEVICE_LOST) {
    device_.timeline().set_lost(
        std::string("vkQueueSubmit: ") + result_name(r) + " with " +
        kernels_of(batch));
  }
  if (r != VK_SUCCESS) {
    vk_check(r, "vkQueueSubmit", " with " + kernels_of(batch));
  }
  count(batch);
  return next_ticket_++;
}

void Recorder::submit(std::unique_ptr<Batch> batch) {
  auto& timeline = device_.timeline();
  std::string error = timeline.lost_reason();
  for (const auto& point : batch->waits) {
    if (auto e = point.error(); !e.empty()) {
      error = std::move(e);
      break;
    }
  }
  if (!error.empty()) {
    retirer_.fail(std::move(batch), error);
    return;
  }
  std::unique_ptr<Commands> commands;
  // Nothing to run: done when everything submitted before it is.
  uint64_t ticket = next_ticket_ - 1;
  auto clock = Timeline::Clock::now;
  try {
    auto begun = clock();
    double begin = device_.profiler().now();
    fusions_.rewrite(*batch);
    if (!batch->records.empty() || ticket == 0) {
      commands = writer_.take();
      ticket = start(*batch, *commands);
    }
    counters().record_ns += std::chrono::nanoseconds(clock() - begun).count();
    device_.profiler().recorded(
        begin, device_.profiler().now(), batch->records.size());
    if (device_.loops() && commands) {
      // One batch at a time, so that a report is known to be its own. One that
      // takes a minute is left to the watch, and its report to the next.
      timeline.wait(ticket, clock(), std::chrono::minutes(1));
      device_.loops()->check();
    }
  } catch (const std::exception& e) {
    if (commands) {
      writer_.give_back(std::move(commands));
    }
    retirer_.fail(std::move(batch), e.what());
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
  retirer_.add(ticket, std::move(batch), std::move(commands));
  completion->set_submitted(ticket);
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
