#include "runtime/rewrite_attention.h"

#include <algorithm>

namespace mlx::core::vulkan {

namespace {

// Whether a record reads the range as operand i and overwrites it.
bool in_place(const Records& b, uint32_t record, int i, const Access& range) {
  auto accesses = b.of(record);
  return same_range(accesses[i], range) && same_range(accesses.back(), range);
}

// Whether a record is q times a number, made for the scores alone.
bool scales(const Records& b, uint32_t record, const ScoresRecord& scores) {
  auto& scale = b.record<PerRowRecord>(record);
  return scores.last_use && !scale.divides && scale.rows == 1 &&
      scale.type == scores.type;
}

} // namespace

AttentionRecords find_attention(const Records& b, const Access& weights) {
  using Q = QuantizedAttention;
  uint32_t nodes[1 + std::size(Q::edges)];
  nodes[0] = find_maker<SoftmaxRecord>(b, weights);
  if (nodes[0] == none || !in_place(b, nodes[0], SoftmaxRecord::X, weights)) {
    return {}; // not a product of attention weights
  }
  trace(b, Q::edges, nodes);
  auto [softmax, scores, mask, scale] = nodes;
  if (scores == none) {
    return {};
  }
  bool masked = mask != none && mask > scores;
  if (masked &&
      !in_place(b, mask, 1 - b.record<MaskRecord>(mask).mask, weights)) {
    count_missed(rule_of(Q::name), Miss::Form);
    return {};
  }
  AttentionRecords found{none, scores, masked ? mask : none, softmax};
  if (scale != none && scales(b, scale, b.record<ScoresRecord>(scores))) {
    found.scale = scale;
    if (may_run_last(b, found.all())) {
      return found;
    }
    found.scale = none; // its result is still used
  }
  if (!may_run_last(b, found.all())) {
    count_missed(rule_of(Q::name), Miss::Order);
    return {};
  }
  return found;
}

} // namespace mlx::core::vulkan
