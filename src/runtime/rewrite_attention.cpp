#include "runtime/rewrite_attention.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

// The scores, and the scale before them, are searched in so many records.
constexpr uint32_t window = 64;

bool touches(std::span<const Access> accesses, const Access& range) {
  return std::any_of(accesses.begin(), accesses.end(), [&](auto& a) {
    return overlap(a, range);
  });
}

// Whether a record reads and writes just the range, its output last.
bool in_place(std::span<const Access> accesses, const Access& range) {
  return !accesses.empty() && accesses.back().write &&
      same_range(accesses.back(), range) &&
      std::any_of(accesses.begin(), accesses.end() - 1, [&](auto& a) {
        return same_range(a, range);
      });
}

// Whether no other record after a member depends on it. The members run after
// all of those records.
bool is_intact(const Records& b, const AttentionRecords& found) {
  for (uint32_t member : {found.scale, found.scores, found.mask}) {
    for (uint32_t k = member; member != none && ++k < b.records.size();) {
      bool is_member =
          k == found.scores || k == found.mask || k == found.softmax;
      if (!is_member && conflict(b.of(member), b.of(k))) {
        return false;
      }
    }
  }
  return true;
}

// The record that made x for the scores alone: q times a number.
uint32_t find_scale(const Records& b, uint32_t scores) {
  const Access& x = b.of(scores)[0];
  auto& what = b.what<ScoresRecord>(scores);
  uint32_t first = scores > window ? scores - window : 0;
  for (uint32_t i = scores; what.last_use && i-- > first;) {
    auto accesses = b.of(i);
    if (touches(accesses, x)) {
      auto* scale = std::get_if<PerRowRecord>(&b.records[i].what);
      bool is = scale && !scale->divides && scale->rows == 1 &&
          scale->type == what.type && accesses.size() == 3 &&
          same_range(accesses[2], x);
      return is ? i : none;
    }
  }
  return none;
}

} // namespace

AttentionRecords find_attention(const Records& b, const Access& weights) {
  AttentionRecords found;
  auto last = static_cast<uint32_t>(b.records.size());
  uint32_t first = last > window ? last - window : 0;
  for (uint32_t i = last; i-- > first;) {
    auto accesses = b.of(i);
    if (!touches(accesses, weights)) {
      continue;
    }
    auto& what = b.records[i].what;
    if (found.softmax == none) {
      if (!std::holds_alternative<SoftmaxRecord>(what) ||
          !in_place(accesses, weights)) {
        return {}; // not a product of attention weights
      }
      found.softmax = i;
    } else if (std::holds_alternative<MaskRecord>(what)) {
      if (found.mask != none || !in_place(accesses, weights)) {
        count_missed(rule_of("attention"), Miss::Form);
        return {};
      }
      found.mask = i;
    } else {
      if (!std::holds_alternative<ScoresRecord>(what) ||
          !same_range(accesses.back(), weights) || accesses.size() != 5) {
        return {};
      }
      found.scores = i;
      break;
    }
  }
  if (!found.found()) {
    return found;
  }
  found.scale = find_scale(b, found.scores);
  if (found.has_scale() && !is_intact(b, found)) {
    found.scale = none; // its result is still used
  }
  if (!is_intact(b, found)) {
    count_missed(rule_of("attention"), Miss::Order);
    return {};
  }
  return found;
}

} // namespace mlx::core::vulkan
