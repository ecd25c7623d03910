// What is on the queue: releases what the device has finished, and watches it.
// Any thread may retire; a thread of its own sees to it that somebody does, and
// tells when the device makes no progress. Batches are done in the order of
// add(), since all share one timeline.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/command_writer.h"
#include "runtime/watch.h"

namespace mlx::core::vulkan {

// The names of its kernels, as an error lists them: some of many.
std::string kernels_of(const Batch& batch);

class Retirer {
 public:
  Retirer(Device& device, CommandWriter& writer);
  ~Retirer();

  // The recorder only, before the batch's completion is told its ticket.
  // `commands` is null for a batch without records, which is done when all
  // before it are.
  void add(
      uint64_t ticket,
      std::unique_ptr<Batch> batch,
      std::unique_ptr<Commands> commands);
  // The recorder only; for a batch that did not start.
  void fail(std::unique_ptr<Batch> batch, const std::string& error);

  // See Recorder.
  void retire();
  void wait_retired(const Completion& last);
  // Waits for what is on the queue, and releases it.
  void finish_submitted();
  void set_watch(WatchSettings settings);

  // That what is on the queue is expected to take.
  double expected_seconds();

  // The next batch is to have marks of progress, so that a report of the watch
  // can say what it was at.
  bool wants_marks();

  // Waits for what is on the queue, and joins the thread.
  void stop();

  // Gives what it keeps to the newest batch on the queue, which is done last.
  void hand_over(Pins& pins);

 private:
  using Clock = Timeline::Clock;
  struct InFlight {
    uint64_t ticket;
    std::unique_ptr<Batch> batch;
    std::unique_ptr<Commands> commands;
    Clock::time_point submitted;
  };

  void loop();
  void look_for_hang(uint64_t ticket);
  std::chrono::nanoseconds ran_for(const InFlight& oldest) const;
  std::string kernels_of(uint64_t ticket);
  std::string describe(const InFlight& oldest, uint32_t done) const;
  void finish(InFlight done);

  Device& device_;
  CommandWriter& writer_;

  std::mutex mutex_; // all below
  std::condition_variable added_;
  std::deque<InFlight> in_flight_;
  Clock::time_point last_done_; // when in_flight_ lost its oldest
  std::vector<uint64_t> finishing_; // tickets out of in_flight_, not released
  std::condition_variable finished_;
  std::vector<InFlight> abandoned_; // a hung device may still use these
  WatchSettings watch_settings_;
  bool slow_ = false; // the last batch took long: the next has marks
  bool stopping_ = false;

  Watch watch_; // the thread's
  std::thread thread_;
};

} // namespace mlx::core::vulkan
