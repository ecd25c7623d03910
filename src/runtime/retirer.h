// Retires submitted batches: releases their resources when the device has
// finished them. Any thread may retire; the retirer's own thread does so if no
// other does, and is the watchdog of the device. Batches finish in the order of
// add(), since all share one timeline.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/command_writer.h"
#include "runtime/watch.h"

namespace mlx::core::vulkan {

// The names of the batch's kernels for an error message, shortened if many.
std::string kernels_of(const Batch& batch);

class Retirer {
 public:
  Retirer(Device& device, CommandWriter& writer);
  ~Retirer();

  // Adds a batch; called by the recorder alone, before set_submitted().
  // `commands` is null for a batch without records, which is done when the
  // previous batches are.
  void add(
      uint64_t ticket,
      std::unique_ptr<Batch> batch,
      std::unique_ptr<Commands> commands);
  // Fails a batch that was not submitted; called by the recorder alone.
  void fail(std::unique_ptr<Batch> batch, const std::string& error);

  // Releases resources of finished batches. Does not block for long.
  void retire();
  // Waits for `last` and retires, until it and all batches submitted before it
  // have released their arrays: concurrent threads finish in any order.
  void wait_retired(const Completion& last);
  // Does what Recorder::wait_for_release() does, for batches on the queue.
  bool wait_for_release(const std::function<bool(const Buffer&)>& wanted);
  // Waits for all submitted batches and retires them.
  void finish_submitted();
  void set_watch(WatchSettings settings);

  // Expected run time of the submitted, unfinished batches.
  double expected_seconds();

  // Whether the next batch needs progress marks, so that the watchdog can name
  // the kernel that hangs.
  bool wants_marks();

  // Waits for all submitted batches and joins the thread.
  void stop();

  // Moves `pins` to the newest submitted batch, which finishes last.
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
  void look_for_loss();
  void look_for_hang(uint64_t ticket);
  std::chrono::nanoseconds ran_for(const InFlight& oldest) const;
  void learn(const InFlight& done, std::chrono::duration<double> took);
  std::string kernels_of(uint64_t ticket);
  std::string describe(const InFlight& oldest, uint32_t done) const;
  // `in_use`: memory that it pins may still be written.
  void finish(InFlight done, bool in_use = false);

  Device& device_;
  CommandWriter& writer_;

  std::mutex
      order_; // of batches whose pins are collected; locked before mutex_
  std::mutex mutex_; // guards the members below
  std::condition_variable added_;
  std::deque<InFlight> in_flight_;
  uint64_t newest_ = 0; // ticket added last
  Clock::time_point last_done_; // when in_flight_ lost its oldest
  std::vector<uint64_t> finishing_; // tickets removed, not released yet
  std::condition_variable finished_;
  std::vector<InFlight> abandoned_; // their memory may still be used
  WatchSettings watch_settings_;
  bool slow_ = false; // the last batch was slow: the next one gets marks
  bool stopping_ = false;

  Watch watch_; // used by the thread alone
  std::thread thread_;
};

} // namespace mlx::core::vulkan
