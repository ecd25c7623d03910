// Counters and MLX_VK_PROFILE: a table per kernel at exit, or a Chrome trace.
// Thread-safe. Free of MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace mlx::core::vulkan {

struct Batch;

// A dispatch or copy, as the profile names it.
struct Profiled {
  std::string name;
  bool matrix_units = false;
  uint64_t bytes = 0;
  double flops = 0;
};

struct Counters {
  // submissions: one per batch, more if the batch was cut. splits: dispatches
  // that ran in parts.
  std::atomic<uint64_t> batches{0}, submissions{0}, dispatches{0}, splits{0},
      copies{0}, barriers{0}, marks{0}, host_waits{0}, decompositions{0};
  // CPU time of the recorder thread for ordering, recording and submission.
  std::atomic<uint64_t> record_ns{0};
};
Counters& counters();

class Profiler {
 public:
  Profiler();

  // Whether GPU timestamps are recorded.
  bool timing() const {
    return timing_;
  }
  // Whether only the time that the GPU is busy is measured, by a timestamp at
  // each end of a batch.
  bool spans() const {
    return spans_.load(std::memory_order_relaxed);
  }
  void measure_spans(bool on); // from 0 seconds on
  void busy(double begin, double end); // of a batch
  double busy();

  // Seconds since the profile began; 0 if it is off.
  double now() const;

  void encoded(const Batch& batch);
  // `begin` and `end` are seconds on the device's clock.
  void kernel(Profiled record, double begin, double end);
  void recorded(double cpu_begin, double cpu_end, size_t records);

  // Prints the table or writes the trace; called once, at shutdown.
  void
  report(const std::string& device, uint64_t uploaded, uint64_t downloaded);

 private:
  void write_trace() const; // under mutex_
  struct Row {
    uint64_t calls = 0, bytes = 0;
    double seconds = 0;
  };
  struct Event {
    Profiled record;
    int track;
    double begin, end;
  };
  bool on_ = false, timing_ = false, trace_ = false;
  std::mutex mutex_;
  std::map<std::string, Row> rows_;
  std::vector<Event> events_;
  double record_seconds_ = 0, gpu_epoch_ = -1;
  std::atomic<bool> spans_{false};
  double busy_seconds_ = 0, busy_until_ = 0; // under mutex_
};

} // namespace mlx::core::vulkan
