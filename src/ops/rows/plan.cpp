#include "ops/rows/plan.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

RowTeam team_of(int lanes, uint32_t length, int most_chunks) {
  int chunks =
      static_cast<int>((uint64_t(length) + 4 * lanes - 1) / (4 * lanes));
  return {lanes, chunks <= most_chunks ? chunks : 0};
}

} // namespace

RowTeam row_team(uint64_t rows, uint32_t length) {
  int lanes = length <= 128 ? 32
      : length <= 512       ? (rows >= 256 ? 32 : 128)
      : length <= 1024      ? 128
                            : 256;
  return team_of(lanes, length, 8);
}

RowParts row_parts(uint64_t rows, uint32_t length) {
  constexpr uint32_t part = 4096;
  if (rows >= 64 || length < 4 * part) {
    return {1, length};
  }
  uint32_t parts = std::min<uint32_t>((length + part - 1) / part, 128);
  uint32_t chunk = ((length + parts - 1) / parts + 3) / 4 * 4;
  return {(length + chunk - 1) / chunk, chunk};
}

NormVjpPlan plan_norm_vjp(uint64_t rows, uint32_t length) {
  RowTeam team = team_of(length <= 512 ? 128 : 256, length, 6);
  uint64_t per_group = team.chunks ? (rows + 511) / 512 : 1;
  return {team, per_group, (rows + per_group - 1) / per_group};
}

SortTile sort_tile(int64_t length, size_t itemsize, bool arg) {
  int most = itemsize == 8 || arg ? 1024 : 2048;
  int size = length <= 32 ? 32
      : length <= 128     ? 128
      : length <= 512     ? 512
                          : 1024;
  size = length > size ? most : size;
  int items = size <= 32 ? 1 : size <= 1024 ? 4 : 8;
  return {size / items, items};
}

bool sorts_by_ranks(const Caps& caps, uint64_t rows, uint64_t n) {
  uint64_t most = caps.software() ? 1 << 23 : uint64_t(caps.cores()) << 21;
  return n <= 1 << 16 && rows <= most && rows * n * n <= most;
}

} // namespace mlx::core::vulkan
