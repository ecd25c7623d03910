// Second step of encoding: a thread takes closed batches when they are ready
// (pending.h), records their command buffers (command_writer.h), submits them,
// and hands them to the retirer (retirer.h). Free of MLX.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/command_writer.h"
#include "runtime/pending.h"
#include "runtime/retirer.h"
#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

class Recorder {
 public:
  explicit Recorder(Device& device);
  ~Recorder();

  // Queues a closed batch. Batches of a stream are submitted in the order
  // pushed. Any thread.
  void push(std::unique_ptr<Batch> batch);

  Retirer& retirer() {
    return retirer_;
  }

  // Waits for the oldest batch whose end frees a buffer that is `wanted`, as
  // long as the device has enough to do after it. Returns whether there was
  // one. Any thread that holds no locks; `wanted` takes none.
  bool wait_for_release(const std::function<bool(const Buffer&)>& wanted);
  // Waits for all batches that are submitted or can be, and retires them. Any
  // thread.
  void finish_submitted();

  // Finishes all batches that can still start and joins the threads.
  void stop();

 private:
  void loop();
  void wait_for_submission(std::chrono::nanoseconds limit);
  void submit(std::unique_ptr<Batch> batch);
  bool shows_cut_loops(const Batch& batch) const;
  bool rewrite(Batch& batch);
  const Kernel* prepare();
  void check_kernels(Batch& batch);
  void count_time(
      Timeline::Clock::time_point begun,
      double begin,
      const Batch& batch);
  std::string why_not(const Batch& batch) const;
  void set_first(Batch& batch);
  void wait_for_more(uint64_t seen, const Kernel* compiling);
  void wait_for(const Kernel& kernel, uint64_t seen);
  uint64_t start(Batch& batch, Commands& commands);
  void submit(VkCommandBuffer commands, const Batch& batch, double seconds);
  void wait_for_room(double seconds);

  struct Queued {
    uint64_t ticket;
    double seconds; // expected
  };

  Device& device_;
  PendingQueue pending_;
  // Members up to gate_ are used by the thread alone, but for retirer_ and
  // pending_, which are thread-safe.
  CompiledFusions fusions_;
  CommandWriter writer_;
  Retirer retirer_;
  uint64_t next_ticket_ = 1;
  std::deque<Queued> queued_; // submissions not known to be finished
  double queued_seconds_ = 0;
  // The last submitted batch, if any batch so far had invalidations.
  std::shared_ptr<Completion> before_;
  std::vector<std::unique_ptr<Batch>> never_started_;
  // The gate of the first batch with a held record. If the gate fails, later
  // batches fail too: they may read results that were never written.
  std::shared_ptr<Gate> gate_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> submitting_{false};
  std::thread thread_;
};

} // namespace mlx::core::vulkan
