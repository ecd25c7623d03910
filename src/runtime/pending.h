// Batches that are not submitted yet: each is held until all that it waits for
// is submitted, and its stream's successors with it. One that other processes
// take part in (host_group.h) is held before each such record until that may
// start; what comes before it goes ahead. Free of Vulkan calls. Thread-safe:
// callers push, the recorder takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

class PendingQueue {
 public:
  // How long a batch is held before what comes before its meeting goes ahead:
  // usually the others are there in less.
  explicit PendingQueue(
      std::chrono::microseconds patience = std::chrono::microseconds(100))
      : patience_(patience) {}

  // Batches of one stream leave in the order pushed.
  void push(std::unique_ptr<Batch> batch);

  // Of the streams' first batches that are ready the one pushed first, or its
  // records up to a meeting or to a Give; with `regardless` all are. Null if
  // there is none. `queued`: seconds that the device is expected to have work
  // for.
  std::unique_ptr<Batch> take(bool regardless = false, double queued = 0);
  // Whether take() would return one.
  bool ready();

  // The recorder's: a batch with meetings that nothing else holds, and that
  // nobody has prepared; to be done before the next take(), which offers its
  // meetings to other processes.
  Batch* to_prepare();
  // Since when one has been held for other processes alone; null: none is.
  std::optional<std::chrono::steady_clock::time_point> held_since();

 private:
  using Clock = std::chrono::steady_clock;
  // Of a batch, for other ranks.
  struct Hold {
    Clock::time_point since = Clock::now();
    Clock::time_point looked; // for processes that have ended
    bool told = false; // who is waited for
  };
  struct Pending {
    uint64_t number; // over all streams
    std::unique_ptr<Batch> batch;
    std::optional<Hold> hold;
  };
  static bool over(const Batch& batch);
  bool ready(const Pending& pending);
  double ready_seconds(uint32_t stream_id);
  void offer(double queued);
  void look_for_trouble(Pending& pending);
  std::unique_ptr<Batch> cut(Pending& pending, bool whole);

  const std::chrono::microseconds patience_;
  std::mutex mutex_;
  uint64_t pushed_ = 0;
  std::map<uint32_t, std::deque<Pending>> streams_; // none is empty
};

} // namespace mlx::core::vulkan
