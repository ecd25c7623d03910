#include "runtime/order.h"

#include <numeric>
#include <utility>

namespace mlx::core::vulkan {

namespace {

void shuffle(std::span<uint32_t> level, uint64_t& state) {
  for (size_t k = level.size(); k > 1; --k) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::swap(level[k - 1], level[state % k]);
  }
}

} // namespace

Order order(
    std::span<const Record> records,
    std::span<const Access> accesses,
    const OrderDebug& debug) {
  size_t n = records.size();
  std::vector<uint32_t> level_of(n);
  std::vector<uint32_t> next; // where the next record of each level goes
  Leveler leveler(accesses.size());
  for (uint32_t i = 0; i < n; ++i) {
    auto& r = records[i];
    level_of[i] = debug.levels
        ? leveler.add(accesses.subspan(r.first_access, r.access_count))
        : i;
    next.resize(std::max<size_t>(next.size(), level_of[i] + 1));
    next[level_of[i]]++;
  }
  std::exclusive_scan(next.begin(), next.end(), next.begin(), 0u);
  Order o;
  o.levels = next;
  o.records.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    o.records[next[level_of[i]]++] = i;
  }
  auto levels = static_cast<int>(o.levels.size());
  int drop = debug.drop_barrier;
  o.last_barrier = drop != levels;
  if (drop > 0 && drop < levels) {
    o.levels.erase(o.levels.begin() + drop);
  }
  if (uint64_t state = debug.shuffle * 0x9e3779b97f4a7c15ull) {
    for (size_t l = 0; l < o.levels.size(); ++l) {
      size_t begin = o.levels[l];
      size_t end = l + 1 < o.levels.size() ? o.levels[l + 1] : n;
      shuffle(std::span(o.records).subspan(begin, end - begin), state);
    }
  }
  return o;
}

} // namespace mlx::core::vulkan
