// Step two of the encoder: a thread that takes closed batches, holds those
// whose waits are not submitted yet (with their stream's successors), levels
// the records, writes the command buffer, submits; and a thread that retires
// what the device has finished. Free of MLX.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/encoder.h"
#include "runtime/watch.h"

namespace mlx::core::vulkan {

class Device;

class Recorder {
 public:
  explicit Recorder(Device& device);
  ~Recorder();

  // Any thread. Batches of one stream are submitted in the order pushed.
  void push(std::unique_ptr<Batch> batch);

  // Releases what the device has finished. Any thread; never blocks for long.
  void retire();

  // Blocks until `last` and all that was submitted before it have released
  // their arrays: threads that retire at once finish in any order.
  void wait_retired(const Completion& last);

  // Finishes all batches that can still start and joins the threads.
  void stop();

  // Any thread; for batches from now on.
  void set_watch(WatchSettings settings);

 private:
  struct Slot; // a command buffer with its ring and queries
  struct InFlight {
    uint64_t ticket;
    std::unique_ptr<Batch> batch;
    std::unique_ptr<Slot> slot; // null: a batch without records
    Timeline::Clock::time_point submitted;
  };

  void record_loop();
  void retire_loop();
  void look_for_hang(uint64_t ticket);
  std::chrono::nanoseconds ran_for(const InFlight& oldest) const;
  void mark(Slot& slot, uint32_t done);
  uint32_t finished(const Slot& slot);
  std::unique_ptr<Batch> next_ready();
  void submit(std::unique_ptr<Batch> batch);
  void record(Batch& batch, Slot& slot);
  void hand_over_kept(Batch& batch);
  void counters_of_submit(const Batch& batch);
  void fail(std::unique_ptr<Batch> batch, const std::string& error);
  void finish(InFlight done);
  std::unique_ptr<Slot> take_slot();

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  uint64_t next_ticket_ = 1;
  Leveler leveler_;
  std::vector<uint32_t> order_, levels_;

  // Under wakeup().mutex.
  std::map<uint32_t, std::deque<std::unique_ptr<Batch>>> queues_;
  size_t queued_ = 0;
  bool stopping_ = false;

  std::mutex flight_mutex_;
  std::condition_variable flight_cv_;
  std::deque<InFlight> in_flight_;
  Timeline::Clock::time_point last_done_; // when in_flight_ lost its oldest
  std::vector<uint64_t> finishing_; // tickets out of in_flight_, not released
  std::condition_variable finished_cv_;
  std::vector<std::unique_ptr<Slot>> free_slots_;
  std::vector<InFlight> abandoned_; // a hung device may still use these
  WatchSettings watch_settings_;
  bool slow_ = false; // the last batch took long: the next has marks
  bool stop_retiring_ = false;

  Watch watch_; // the retiring thread's

  std::thread record_thread_, retire_thread_;
};

} // namespace mlx::core::vulkan
