// Distribution of rows: teams of invocations, parts of long rows, tiles of a
// sort. Pure functions of a shape, free of MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/radix.h"
#include "kernels/rows.h"
#include "ops/candidates.h"
#include "policy/policy.h"

namespace mlx::core::vulkan {

// Invocations per row, and four-item chunks that each keeps in registers (0:
// too many to keep). Short rows share a workgroup. Independent of the row
// count, so that a row has the same bits in any batch.
struct RowTeam {
  int lanes;
  int chunks;
};
RowTeam row_team(uint32_t length);
// With the bits of row_team's (common/softmax_row.glsl): more lanes for few
// rows, because a router compares each item with all others.
RowTeam softmax_team(uint64_t rows, uint32_t length);

// Splits a few long rows, such as a vocabulary's logits, into parts.
struct RowParts {
  uint32_t parts = 1;
  uint32_t chunk; // items per part
};
RowParts row_parts(uint64_t rows, uint32_t length);

struct NormProblem {
  Type type;
  uint32_t n; // items of a row
  bool layer, weight, bias, vec;
};
NormVariant plan_norm(const NormProblem& p);
// Those with other numbers of lanes per row; `wanted`: only of this name.
std::vector<Named<NormVariant>> norm_candidates(
    const NormProblem& p,
    const PlanName* wanted = nullptr);

// Gradients of norms: a workgroup takes `rows` rows.
struct NormVjpPlan {
  RowTeam team;
  uint64_t rows, groups;
};
NormVjpPlan plan_norm_vjp(uint64_t rows, uint32_t length);

// Items of a row that one workgroup sorts, and rows of a workgroup. Keys and
// positions fit the 16 KiB of shared memory that every device has.
struct SortTile {
  int lanes, items, rows;
  int size() const {
    return lanes * items;
  }
};
SortTile sort_tile(uint32_t length, size_t itemsize, bool arg);

// Whether contiguous rows too long for one workgroup are rank-sorted: n * n
// comparisons in one dispatch, if cheaper than the dispatches of a merge sort.
bool sorts_by_ranks(const Target& gpu, uint64_t rows, uint64_t n);
// Whether counting is faster than a tile's sort too: for a single row, such as
// the experts of a few tokens. Floats stay with the tile's sort, which the rule
// for routers matches (docs/lab/2026-11-26-rows.md).
bool counts_tile(const Target& gpu, Type t, uint64_t rows, uint64_t n);

// Radix sort of long rows with keys of up to 32 bits, for fixed subgroup sizes;
// empty if a merge sort is better. tile and digits: of step Scatter.
struct RadixPlan {
  RadixVariant scatter; // without FIRST and LAST
  uint32_t tile, digits;
};
std::optional<RadixPlan>
plan_radix(const Target& gpu, Type t, bool arg, uint64_t rows, uint32_t n);
// The variants of a digit's steps, made from that of step Scatter.
RadixVariant radix_scatter(const RadixPlan& plan, uint32_t digit);
RadixVariant radix_count(RadixVariant scatter);
RadixVariant radix_prefix(RadixVariant scatter);

} // namespace mlx::core::vulkan
