// Step two of the encoder: a thread that takes closed batches as they become
// ready (pending.h), writes their commands (command_writer.h), submits them,
// and hands them to the retirer (retirer.h). Free of MLX.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/command_writer.h"
#include "runtime/pending.h"
#include "runtime/retirer.h"
#include "runtime/rewrite_kernels.h"

namespace mlx::core::vulkan {

class Recorder {
 public:
  explicit Recorder(Device& device);
  ~Recorder();

  // Any thread. Batches of one stream are submitted in the order pushed.
  void push(std::unique_ptr<Batch> batch);

  // Releases what the device has finished. Any thread; never blocks for long.
  void retire() {
    retirer_.retire();
  }

  // Blocks until `last` and all that was submitted before it have released
  // their arrays: threads that retire at once finish in any order.
  void wait_retired(const Completion& last) {
    retirer_.wait_retired(last);
  }

  // Waits for what is on the queue, or can be, and releases it. Any thread.
  void finish_submitted();

  // Finishes all batches that can still start and joins the threads.
  void stop();

  // Any thread.
  void set_watch(WatchSettings settings) {
    retirer_.set_watch(settings);
  }

 private:
  void loop();
  void submit(std::unique_ptr<Batch> batch);
  bool shows_cut_loops(const Batch& batch) const;
  void finish_kernels(const Batch& batch);
  void prepare_meetings();
  std::string why_not(const Batch& batch) const;
  void set_first(Batch& batch);
  void wait_for_more(uint64_t seen);
  uint64_t start(const Batch& batch, Commands& commands);
  void submit(VkCommandBuffer commands, const Batch& batch);

  Device& device_;
  PendingQueue pending_;
  CompiledFusions fusions_; // the thread's
  CommandWriter writer_;
  Retirer retirer_;
  uint64_t next_ticket_ = 1; // the thread's
  // The last batch on the queue, if any so far had invalidations; the thread's.
  std::shared_ptr<Completion> before_;
  std::vector<std::unique_ptr<Batch>> never_started_; // the thread's
  // Of the first batch that other processes took part in. What came after may
  // be made of what they did not do.
  std::shared_ptr<HostGroup> group_; // the thread's
  std::atomic<bool> stopping_{false};
  std::atomic<bool> submitting_{false};
  std::thread thread_;
};

} // namespace mlx::core::vulkan
