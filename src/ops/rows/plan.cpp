#include "ops/rows/plan.h"

#include <algorithm>
#include <bit>

namespace mlx::core::vulkan {

namespace {

RowTeam team_of(int lanes, uint32_t length, int most_chunks) {
  int chunks =
      static_cast<int>((uint64_t(length) + 4 * lanes - 1) / (4 * lanes));
  return {lanes, chunks <= most_chunks ? chunks : 0};
}

} // namespace

RowTeam row_team(uint32_t length) {
  // Further lanes of rows of up to 128 items would only add zeros.
  int lanes = length <= 128 ? std::bit_ceil(std::max(ceil_div(length, 4), 1u))
      : length <= 512       ? 32
      : length <= 1024      ? 128
                            : 256;
  return team_of(lanes, length, 8);
}

RowTeam softmax_team(uint64_t rows, uint32_t length) {
  return rows < 256 && length > 128 && length <= 512 ? team_of(128, length, 8)
                                                     : row_team(length);
}

RowParts row_parts(uint64_t rows, uint32_t length) {
  constexpr uint32_t part = 4096;
  if (rows >= 64 || length < 4 * part) {
    return {1, length};
  }
  uint32_t parts = std::min<uint32_t>(ceil_div(length, part), 128);
  uint32_t chunk = round_up(ceil_div(length, parts), 4);
  return {ceil_div(length, chunk), chunk};
}

namespace {

NormVariant norm_variant(const NormProblem& p, const RowTeam& team) {
  return {
      .T = p.type,
      .LAYER = p.layer,
      .WEIGHT = p.weight,
      .BIAS = p.bias,
      .LANES = team.lanes,
      .CHUNKS = team.chunks,
      .VEC = p.vec};
}

} // namespace

NormVariant plan_norm(const NormProblem& p) {
  return norm_variant(p, row_team(p.n));
}

std::vector<Named<NormVariant>> norm_candidates(
    const NormProblem& p,
    const PlanName* wanted) {
  Candidates<NormVariant> c(wanted);
  for (uint32_t lanes : {32, 64, 128, 256}) {
    c.add({"{} lanes", {lanes}}, [&] {
      return norm_variant(p, team_of(static_cast<int>(lanes), p.n, 8));
    });
  }
  return std::move(c.found);
}

NormVjpPlan plan_norm_vjp(uint64_t rows, uint32_t length) {
  RowTeam team = team_of(length <= 512 ? 128 : 256, length, 6);
  uint64_t per_group = team.chunks ? ceil_div(rows, 512) : 1;
  return {team, per_group, ceil_div(rows, per_group)};
}

SortTile sort_tile(uint32_t length, size_t itemsize, bool arg) {
  uint32_t most = itemsize == 8 || arg ? 1024 : 2048;
  int size = std::bit_ceil(std::clamp(length, 2u, most));
  int items = size <= 1024 ? std::min(size, 4) : 8;
  int lanes = size / items;
  return {lanes, items, std::max(64 / lanes, 1)};
}

bool sorts_by_ranks(const Target& gpu, uint64_t rows, uint64_t n) {
  uint64_t most = uint64_t(gpu.cores()) * gpu.policy.rank_comparisons;
  return n <= 1 << 16 && rows <= most && rows * n * n <= most;
}

bool counts_tile(const Target& gpu, Type t, uint64_t rows, uint64_t n) {
  bool integers = t == Type::u32 || t == Type::i32;
  return integers && rows == 1 && n > 64 && n <= gpu.policy.counted_items;
}

std::optional<RadixPlan>
plan_radix(const Target& gpu, Type t, bool arg, uint64_t rows, uint32_t n) {
  constexpr uint64_t most_tiles = 1 << 20; // counts of 1 GiB
  RadixVariant v{
      .STEP = "Scatter",
      .T = bits_of(size_of(t)),
      .ORDER = "Unsigned",
      .INF = 0,
      .ARG = arg,
      .FIRST = false,
      .LAST = false,
      .SG = static_cast<int>(gpu.caps.matrix_subgroup())};
  if (v.T == Type::u64) {
    return {};
  }
  if (info_of(t).kind == Kind::INT) {
    v.ORDER = "Signed";
  } else if (info_of(t).kind == Kind::FLOAT) {
    v.ORDER = "Float";
    v.INF = t == Type::f16 ? 0x7c00 : t == Type::bf16 ? 0x7f80 : 0x7f800000;
  }
  auto& policy = gpu.policy;
  uint32_t least = v.T == Type::u32 ? policy.radix_words : policy.radix_items;
  if (!least || n < least || v.SG < 8 || v.SG > 64) {
    return {};
  }
  uint32_t tile = RADIX_SUBGROUPS * v.SG * RADIX_ITEMS;
  uint64_t tiles = rows * ceil_div(n, tile);
  uint32_t shared =
      4 * (tile + (RADIX_SUBGROUPS + 2) * RADIX_DIGITS + RADIX_DIGITS / v.SG);
  if (tiles > most_tiles || shared > gpu.caps.shared_memory) {
    return {};
  }
  return RadixPlan{v, tile, uint32_t(size_of(t))};
}

RadixVariant radix_scatter(const RadixPlan& plan, uint32_t digit) {
  RadixVariant v = plan.scatter;
  v.FIRST = v.ARG && digit == 0;
  v.LAST = v.ARG && digit + 1 == plan.digits;
  return v;
}

RadixVariant radix_count(RadixVariant v) {
  v.STEP = "Count";
  v.ARG = v.FIRST = v.LAST = false;
  return v;
}

RadixVariant radix_prefix(RadixVariant v) {
  return {
      .STEP = "Prefix",
      .T = Type::u32,
      .ORDER = "Unsigned",
      .INF = 0,
      .ARG = false,
      .FIRST = false,
      .LAST = false,
      .SG = v.SG};
}

} // namespace mlx::core::vulkan
