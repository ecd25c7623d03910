// Tells a batch that hangs from one that is long, and says what it was doing.
// Pure, free of Vulkan; one thread (the retirer) uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

struct WatchSettings {
  std::chrono::nanoseconds limit{0}; // without progress; 0: off
  bool fails = false; // the waiting calls throw instead of waiting on
};

class Watch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The oldest batch on the queue is `ticket`, of which `done` records are
  // known to be finished. True once a batch, when neither has changed for
  // `limit`.
  bool hangs(
      uint64_t ticket,
      uint32_t done,
      Time now,
      std::chrono::nanoseconds limit);

 private:
  uint64_t ticket_ = 0;
  uint32_t done_ = 0;
  bool told_ = false;
  Time since_{};
};

// A dispatch or copy of the batch, as the report names it.
struct WatchedRecord {
  std::string name; // kernel with its variant
  Grid grid; // workgroups
};

// Sentences for the user: what did not end, on which device, what to do.
// `in_flight` are the records that may be running, of `total`.
std::string describe_hang(
    const std::string& device,
    uint32_t stream,
    std::chrono::nanoseconds limit,
    uint32_t done,
    uint32_t total,
    const std::vector<WatchedRecord>& in_flight);

} // namespace mlx::core::vulkan
