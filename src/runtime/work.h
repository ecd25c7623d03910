// How long work is expected to take, and where it is cut so that no submission
// takes long: drivers reset a GPU that is at one for some seconds, and a
// desktop stands still meanwhile. Pure, free of Vulkan calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/batch.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

// What a device does in a second.
struct Rates {
  double bytes = 0; // of device memory, read or written
  double flops = 0;
  double matrix_flops = 0; // of kernels that use its matrix units
  double copy_bytes = 0; // of copies between host and device
};
// By what kind of device it is and how many cores it has: what kernels reach
// on slow devices of that kind, not the peak. Too low costs a cut that was not
// needed, some 10 us for each WorkLimit::seconds; too high a reset.
Rates assumed_rates(const Caps& caps);

struct WorkLimit {
  Rates rates;
  double seconds = 0; // of a submission; infinity: none

  double expect(const Work& work, uint64_t operand_bytes, bool matrix_units)
      const {
    double bytes = work.bytes > 0 ? work.bytes : double(operand_bytes);
    double by_flops =
        work.flops / (matrix_units ? rates.matrix_flops : rates.flops);
    double by_bytes = bytes / rates.bytes;
    return by_bytes > by_flops ? by_bytes : by_flops;
  }
};
// `milliseconds` as MLX_VK_MAX_MS_PER_SUBMISSION: negative by the device, 0
// none.
WorkLimit work_limit(const Caps& caps, double milliseconds);

// A range of a grid as vkCmdDispatchBase takes it.
struct GridPart {
  Grid base{0, 0, 0}, count;
};
// A grid in about `parts` parts of about the same size. Kernels know their
// workgroup by group_index() alone (kernels/common/args.glsl): in its part each
// has the index that it has in the whole grid.
std::vector<GridPart> split(Grid grid, uint32_t parts);

// One command of a batch that takes several submissions.
struct Step {
  uint32_t position = 0; // in the order of the batch's records
  bool cut = false; // the first of its submission, but for the batch's first
  bool last = true; // of its record
  GridPart part; // of a dispatch
  uint64_t offset = 0, size = 0; // of a copy, bytes
};
// The commands of `order`, cut by the limit. Empty if all of it is expected to
// fit one submission.
std::vector<Step> cut_work(
    std::span<const uint32_t> order,
    std::span<const Record> records,
    const WorkLimit& limit);

// Parts that a record of so many seconds is to be run in.
uint32_t parts_for(double seconds, double limit);

} // namespace mlx::core::vulkan
