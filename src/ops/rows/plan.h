// How rows are shared out: teams of invocations, parts of long rows, tiles of a
// sort. Pure functions of a shape, free of MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vk/caps.h"

namespace mlx::core::vulkan {

// Invocations for a row, and four-item chunks each keeps in registers (0: too
// many). Short rows share a workgroup.
struct RowTeam {
  int lanes;
  int chunks;
};
RowTeam row_team(uint64_t rows, uint32_t length);

// A few long rows, such as a vocabulary's logits, are worked on in parts.
struct RowParts {
  uint32_t parts = 1;
  uint32_t chunk; // items of one
};
RowParts row_parts(uint64_t rows, uint32_t length);

// The gradients of norms: a workgroup takes `rows` rows.
struct NormVjpPlan {
  RowTeam team;
  uint64_t rows, groups;
};
NormVjpPlan plan_norm_vjp(uint64_t rows, uint32_t length);

// The items of a row that one workgroup sorts, of few sizes so that few
// variants are compiled. Keys and positions fit the 16 KiB of shared memory
// that every device has.
struct SortTile {
  int threads, items;
  int size() const {
    return threads * items;
  }
};
SortTile sort_tile(int64_t length, size_t itemsize, bool arg);

// Whether contiguous rows that one workgroup does not sort are sorted by
// counting: n * n comparisons in one dispatch, as long as these cost less than
// the dispatches that merge.
bool sorts_by_ranks(const Caps& caps, uint64_t rows, uint64_t n);

} // namespace mlx::core::vulkan
