// How rows are shared out: teams of invocations, parts of long rows, tiles of a
// sort. Pure functions of a shape, free of MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/radix.h"
#include "vk/caps.h"

namespace mlx::core::vulkan {

// Invocations for a row, and four-item chunks each keeps in registers (0: too
// many). Short rows share a workgroup. How many rows there are does not matter,
// so that a row's bits are the same in any batch.
struct RowTeam {
  int lanes;
  int chunks;
};
RowTeam row_team(uint32_t length);
// More for few rows, to the same bits (common/softmax_row.glsl): a router
// counts each item of a row against all others.
RowTeam softmax_team(uint64_t rows, uint32_t length);

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

// Long rows of keys of up to 32 bits are sorted by digits, where subgroups have
// a fixed size: nothing, if a merge sort is the way. Of step Scatter, its
// tiles and digits.
struct RadixPlan {
  RadixVariant scatter; // but for FIRST and LAST
  uint32_t tile, digits;
};
std::optional<RadixPlan> plan_radix(
    const Caps& caps,
    Type t,
    bool arg,
    uint64_t rows,
    uint32_t n,
    int least = -1); // as TestHooks::radix_items (vk/config.h)
// Its variants of step Scatter, and of the steps before.
RadixVariant radix_scatter(const RadixPlan& plan, uint32_t digit);
RadixVariant radix_count(RadixVariant scatter);
RadixVariant radix_prefix(RadixVariant scatter);

} // namespace mlx::core::vulkan
