// Estimates run times and cuts work so that no submission takes long: drivers
// reset a GPU that runs one for some seconds, and a desktop freezes meanwhile.
// Pure, free of Vulkan calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/batch.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

// Throughput of a device, per second.
struct Rates {
  double bytes = 0; // of device memory, read or written
  double flops = 0;
  double matrix_flops = 0; // of kernels that use its matrix units
  double copy_bytes = 0; // of copies between host and device
};
// Rates assumed from the kind of device and its number of cores: those that
// kernels reach on slow devices of that kind, not the peak. A rate that is too
// low costs an unneeded cut (10 us for each WorkLimit::seconds); one that is
// too high, a reset.
Rates assumed_rates(const Caps& caps);

struct WorkLimit {
  Rates rates;
  double seconds = 0; // of a submission; infinity: none

  // `bus_seconds`: that the bus takes for those of `operand_bytes` that are in
  // the host's memory.
  double expect(
      const Work& work,
      uint64_t operand_bytes,
      double bus_seconds,
      bool matrix_units) const {
    double bytes = work.bytes > 0 ? work.bytes : double(operand_bytes);
    double by_flops =
        work.flops / (matrix_units ? rates.matrix_flops : rates.flops);
    double by_bytes = bytes / rates.bytes;
    if (bus_seconds > 0) { // the same part of what is read
      by_bytes += bus_seconds * bytes / operand_bytes;
    }
    return by_bytes > by_flops ? by_bytes : by_flops;
  }
};
// `milliseconds` as in MLX_VK_MAX_MS_PER_SUBMISSION: negative chooses by
// device, 0 means no limit.
WorkLimit work_limit(const Caps& caps, double milliseconds);

// How many times longer than estimated the device takes: the chip is slower
// than its rates say, or busy with other work. Thread-safe.
class Slowdown {
 public:
  static constexpr double most = 100;

  double factor() const {
    return factor_.load(std::memory_order_relaxed);
  }
  // Learns from work that was estimated at `expected` seconds and took
  // `measured`. A slower result counts at once, a faster one by an eighth.
  void learn(double expected, double measured) {
    double now = std::clamp(measured / expected, 1.0, most);
    double before = factor();
    factor_.store(
        now > before ? now : before + (now - before) / 8,
        std::memory_order_relaxed);
  }

 private:
  std::atomic<double> factor_{1};
};

// A part of a grid, for vkCmdDispatchBase.
struct GridPart {
  Grid base{0, 0, 0}, count;
};
// Splits a grid into about `parts` parts of similar size. Kernels identify
// their workgroup by group_index() alone (kernels/common/args.glsl), which is
// the same in a part as in the whole grid.
std::vector<GridPart> split(Grid grid, uint32_t parts);

// A command of a batch that takes several submissions.
struct Step {
  uint32_t position = 0; // in the order of the batch's records
  bool cut = false; // begins a submission other than the first
  bool last = true; // the last part of its record
  GridPart part; // of a dispatch
  uint64_t offset = 0, size = 0; // of a copy, bytes
};
// The commands of `order`, cut into submissions of at most `limit` estimated
// seconds; empty if one submission suffices.
std::vector<Step> cut_work(
    std::span<const uint32_t> order,
    std::span<const Record> records,
    double limit);

// The number of parts for a record that takes `seconds`.
uint32_t parts_for(double seconds, double limit);

} // namespace mlx::core::vulkan
