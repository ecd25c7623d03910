// Batches that are not submitted yet: each is held until all that it waits for
// is submitted, and its stream's successors with it. Free of Vulkan calls.
// Thread-safe: callers push, the recorder takes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

class PendingQueue {
 public:
  // Batches of one stream leave in the order pushed.
  void push(std::unique_ptr<Batch> batch);

  // Of the streams' first batches that are ready the one pushed first; with
  // `regardless` all are. Null if there is none.
  std::unique_ptr<Batch> take(bool regardless = false);
  // Whether take() would return one.
  bool ready();

 private:
  struct Pending {
    uint64_t number; // over all streams
    std::unique_ptr<Batch> batch;
  };
  static bool ready(const Batch& batch);

  std::mutex mutex_;
  uint64_t pushed_ = 0;
  std::map<uint32_t, std::deque<Pending>> streams_; // none is empty
};

} // namespace mlx::core::vulkan
