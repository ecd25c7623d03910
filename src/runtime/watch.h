// Detects hangs: distinguishes a batch that makes no progress from a long one,
// and describes it. Pure, free of Vulkan; used by the retirer's thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

struct WatchSettings {
  std::chrono::nanoseconds limit{0}; // without progress; 0: off
  bool fails = false; // a hang makes waiting calls throw
};

class Watch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `ticket` is the oldest submitted batch, of which `done` records are known
  // to be finished. Returns true once per batch, when neither has changed for
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

// A dispatch or copy as the report names it.
struct WatchedRecord {
  std::string name; // kernel with its variant
  Grid grid; // workgroups
};

// The message for the user: what does not end, on which device, and what to do.
// `in_flight` are the records of `total` that may be running.
std::string describe_hang(
    const std::string& device,
    uint32_t stream,
    std::chrono::nanoseconds limit,
    uint32_t done,
    uint32_t total,
    const std::vector<WatchedRecord>& in_flight);

} // namespace mlx::core::vulkan
