// Attention over a quantized cache, recorded as three steps: the product that
// gives scores, possibly masked or biased; their softmax; and the product with
// the values. The last product's primitive looks here for the others while it
// encodes, because it knows that no one else reads the weights: one kernel then
// replaces all, and scores and weights are never written
// (docs/dev/rewrites.md). Pure.
#pragma once

#include <array>

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

// Records of an open batch that are about to be replaced; none: not there.
struct AttentionRecords {
  uint32_t scale = none; // q times a number, with PerRowRecord
  uint32_t scores = none; // with ScoresRecord
  uint32_t mask = none; // with MaskRecord
  uint32_t softmax = none;

  bool found() const {
    return scores != none;
  }
  std::array<uint32_t, 4> all() const { // in order
    return {scale, scores, mask, softmax};
  }
};

// Finds the records that computed `weights` in place: nothing else has touched
// that range since the scores were written, and the inputs of the scores are
// unchanged. A scale counts if only the scores read its result.
AttentionRecords find_attention(const Records& batch, const Access& weights);

} // namespace mlx::core::vulkan
