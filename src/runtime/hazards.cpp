#include "runtime/hazards.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {
// More disjoint spans of one allocation than this are merged into one: still
// correct, only coarser.
constexpr size_t max_spans = 64;
} // namespace

uint32_t Leveler::add(std::span<const Access> accesses) {
  int32_t level = 0;
  for (const auto& a : accesses) {
    auto it = spans_.find(a.base);
    if (it == spans_.end() || a.begin >= a.end) {
      continue;
    }
    for (const auto& s : it->second) {
      if (s.begin < a.end && a.begin < s.end) {
        level = std::max(level, s.write_level + 1);
        if (a.write) {
          level = std::max(level, s.read_level + 1);
        }
      }
    }
  }
  for (const auto& a : accesses) {
    if (a.begin < a.end) {
      update(a, level);
    }
  }
  return static_cast<uint32_t>(level);
}

void Leveler::update(const Access& a, int32_t level) {
  auto& spans = spans_[a.base];
  if (a.write) {
    // The new writer supersedes what it covers entirely: whoever conflicts
    // with the old span there conflicts with the writer, at a higher level.
    std::erase_if(spans, [&](const Span& s) {
      return a.begin <= s.begin && s.end <= a.end &&
          std::max(s.write_level, s.read_level) <= level;
    });
    spans.push_back({a.begin, a.end, level, -1});
  } else {
    for (auto& s : spans) {
      if (s.begin == a.begin && s.end == a.end) {
        s.read_level = std::max(s.read_level, level);
        return;
      }
    }
    spans.push_back({a.begin, a.end, -1, level});
  }
  if (spans.size() > max_spans) {
    Span all = spans.front();
    for (const auto& s : spans) {
      all.begin = std::min(all.begin, s.begin);
      all.end = std::max(all.end, s.end);
      all.write_level = std::max(all.write_level, s.write_level);
      all.read_level = std::max(all.read_level, s.read_level);
    }
    spans.assign(1, all);
  }
}

} // namespace mlx::core::vulkan
