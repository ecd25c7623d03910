// The order of a batch's records and the barriers between them. Pure, free of
// Vulkan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/batch.h"

namespace mlx::core::vulkan {

struct OrderDebug {
  bool levels = true; // false: each record has a level of its own
  uint64_t shuffle = 0; // seed of a permutation within each level; 0: none
  int drop_barrier = -1; // the barrier to leave out, from 1
};

// Barrier k precedes level k, from 1. A last barrier ends a submission, for the
// next one and for the host.
struct Order {
  std::vector<uint32_t> records; // indices in execution order
  std::vector<uint32_t>
      levels; // the index in `records` where each level begins
  bool last_barrier = true;
};

// Conflicting records get increasing levels (hazards.h); records of one level
// keep program order. A level whose barrier is dropped joins the previous one.
Order order(
    std::span<const Record> records,
    std::span<const Access> accesses,
    const OrderDebug& debug = {});

} // namespace mlx::core::vulkan
