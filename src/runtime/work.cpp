#include "runtime/work.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlx::core::vulkan {

namespace {

struct RateRow {
  uint32_t cores; // if the driver does not report it
  double bytes_per_core, least_bytes, most_bytes; // a second
  double flops_per_core;
  double copy_bytes;
};
// An AMD or Intel core of 64 lanes at 1.2 GHz has 150 GFLOP/s, of which kernels
// without matrix units reach half. Memory: 4 GB/s per core is half the peak of
// an RX 480 or a Vega 8, and an eighth of an H200's. Copies: PCIe 3 x8.
constexpr RateRow other_gpu{24, 4e9, 80e9, 800e9, 75e9, 5e9};
constexpr RateRow integrated_gpu{6, 4e9, 20e9, 200e9, 75e9, 5e9};
// One core of a CPU with 256-bit vectors, by lavapipe.
constexpr Rates software_rates{2e9, 4e9, 4e9, 2e9};
constexpr double matrix_gain = 4;

bool integrated(const Caps& caps) {
  return caps.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
}

// An estimate that asks for more parts is wrong.
constexpr double most_parts = 4096;

} // namespace

Rates assumed_rates(const Caps& caps) {
  if (caps.software()) {
    return software_rates;
  }
  const RateRow& row = integrated(caps) ? integrated_gpu : other_gpu;
  double cores = caps.core_count ? caps.core_count : row.cores;
  return {
      std::clamp(cores * row.bytes_per_core, row.least_bytes, row.most_bytes),
      cores * row.flops_per_core,
      cores * row.flops_per_core * matrix_gain,
      row.copy_bytes};
}

WorkLimit work_limit(const Caps& caps, double milliseconds) {
  if (milliseconds < 0) {
    // No watchdog resets a CPU, and no desktop waits for it.
    milliseconds = caps.software() ? 0 : integrated(caps) ? 100 : 500;
  }
  return {
      assumed_rates(caps),
      milliseconds > 0 ? milliseconds * 1e-3
                       : std::numeric_limits<double>::infinity()};
}

uint32_t parts_for(double seconds, double limit) {
  return static_cast<uint32_t>(
      std::min(std::ceil(seconds / limit), most_parts));
}

std::vector<GridPart> split(Grid grid, uint32_t parts) {
  // Splits the outermost axis alone, since group_index() is x + X (y + Y z) and
  // X and Y must be those of the whole grid. A row is the smallest part.
  uint64_t groups = uint64_t(grid.x) * grid.y * grid.z;
  uint64_t per_part = std::max<uint64_t>(groups / std::max(parts, 1u), 1);
  std::vector<GridPart> result;
  // Nearly equal ranges of [0, n), none longer than `most`.
  auto ranges = [&](uint64_t n, uint64_t most, auto&& part) {
    uint64_t count = ceil_div(n, most);
    result.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t begin = i * n / count, end = (i + 1) * n / count;
      result.push_back(part(uint32_t(begin), uint32_t(end - begin)));
    }
  };
  if (grid.z > 1) {
    // A grid of more than 2^32 groups, which no kernel has.
    ranges(grid.z, 1, [&](uint32_t begin, uint32_t n) {
      return GridPart{{0, 0, begin}, {grid.x, grid.y, n}};
    });
  } else if (grid.y == 1) {
    ranges(grid.x, per_part, [&](uint32_t begin, uint32_t n) {
      return GridPart{{begin, 0, 0}, {n, 1, 1}};
    });
  } else {
    uint64_t rows = std::max<uint64_t>(per_part / grid.x, 1);
    ranges(grid.y, rows, [&](uint32_t begin, uint32_t n) {
      return GridPart{{0, begin, 0}, {grid.x, n, 1}};
    });
  }
  return result;
}

std::vector<Step> cut_work(
    std::span<const uint32_t> order,
    std::span<const Record> records,
    double limit) {
  double total = 0;
  for (const Record& r : records) {
    total += r.seconds;
  }
  std::vector<Step> steps;
  if (!(total > limit)) {
    return steps;
  }
  double taken = 0; // by the submission so far
  auto add = [&](Step step, double seconds) {
    step.cut = taken > 0 && taken + seconds > limit;
    taken = step.cut ? seconds : taken + seconds;
    steps.push_back(step);
  };
  for (uint32_t i = 0; i < order.size(); ++i) {
    const Record& r = records[order[i]];
    double seconds = r.seconds;
    if (r.kind == Record::Kind::Copy) {
      uint64_t parts = std::max(parts_for(seconds, limit), 1u);
      uint64_t size = round_up(r.copy_size / parts, 16);
      for (uint64_t at = 0; at < r.copy_size; at += size) {
        uint64_t n = std::min(size, r.copy_size - at);
        add({.position = i,
             .last = at + n == r.copy_size,
             .offset = at,
             .size = n},
            seconds * double(n) / double(r.copy_size));
      }
    } else if (r.parts > 1) {
      auto parts = split(r.grid, r.parts);
      for (size_t p = 0; p < parts.size(); ++p) {
        add({.position = i, .last = p + 1 == parts.size(), .part = parts[p]},
            seconds / double(parts.size()));
      }
    } else {
      add({.position = i, .part = {{0, 0, 0}, r.grid}}, seconds);
    }
  }
  return steps;
}

} // namespace mlx::core::vulkan
