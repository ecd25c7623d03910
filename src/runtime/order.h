// In which order the records of a batch run, and between which barriers. Pure,
// free of Vulkan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

struct OrderDebug {
  bool levels = true; // false: each record has a level of its own
  uint64_t shuffle = 0; // seed of a permutation within each level; 0: none
  int drop_barrier = -1; // the one to leave out, from 1
};

// Barrier k precedes level k, from 1; one more ends a submission, for the next
// and for the host.
struct Order {
  std::vector<uint32_t> records; // indices, in the order they run in
  std::vector<uint32_t> levels; // where in `records` each level begins
  bool last_barrier = true;
};

// Records that conflict get increasing levels (hazards.h). Those of one level
// keep the program's order. A level whose barrier is dropped joins the one
// before.
Order order(
    std::span<const Record> records,
    std::span<const Access> accesses,
    const OrderDebug& debug = {});

} // namespace mlx::core::vulkan
