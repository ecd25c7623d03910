// Batches that are not submitted yet. A batch and its successors in the stream
// are held until everything that it waits for is submitted. A batch with a
// record that a gate holds (gate.h) is held before it until it may start; the
// records before it are submitted. Free of Vulkan calls. Thread-safe: callers
// push, the recorder takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

class PendingQueue {
 public:
  // `patience`: how long a batch is held as a whole before the records that
  // precede its announced one are submitted. Usually the gate opens sooner.
  explicit PendingQueue(
      std::chrono::microseconds patience = std::chrono::microseconds(100))
      : patience_(patience) {}

  // Batches of one stream leave in the order pushed.
  void push(std::unique_ptr<Batch> batch);

  // The oldest of the streams' first batches that are ready, or its records up
  // to where it is held or a submission ends; null if none is prepared and
  // ready. `regardless` ignores both. `queued`: expected run time of the
  // submitted batches, in seconds.
  std::unique_ptr<Batch> take(bool regardless = false, double queued = 0);
  // Returns true if the first batch of a stream waits for nothing and has no
  // record that a gate holds. Its kernels may be missing.
  bool ready();

  // The batches whose kernels have not been started, and the streams' first
  // batches that nothing but a gate holds and that are not prepared. The
  // recorder alone may change them, until take() returns them.
  struct Unprepared {
    Batch* batch;
    bool first;
  };
  std::vector<Unprepared> unprepared();
  // The time from which a batch has been held by a gate alone, if one is.
  std::optional<std::chrono::steady_clock::time_point> held_since();

 private:
  using Clock = std::chrono::steady_clock;
  // The state of a batch that a gate holds.
  struct Wait {
    Clock::time_point since = Clock::now();
    Clock::time_point looked; // last check for processes that have ended
    bool told = false; // what is missing was reported
  };
  struct Pending {
    uint64_t number; // over all streams
    std::unique_ptr<Batch> batch;
    std::optional<Wait> wait;
  };
  static bool over(const Batch& batch);
  bool ready(const Pending& pending);
  double ready_seconds(uint32_t stream_id);
  void announce(double queued);
  void look_for_trouble(Pending& pending);
  std::unique_ptr<Batch> cut(Pending& pending, bool whole);

  const std::chrono::microseconds patience_;
  std::mutex mutex_;
  uint64_t pushed_ = 0;
  std::map<uint32_t, std::deque<Pending>> streams_; // without empty ones
};

} // namespace mlx::core::vulkan
