// Attention over a quantized cache, as three products' worth of records:
// scores, maybe hidden or biased, their softmax, and the product with the
// values. The last one's primitive asks here for the others while it encodes,
// since it knows that nobody else wants the weights: they and the scores are
// never written where one kernel takes all (docs/dev/rewrites.md).
// Pure.
#pragma once

#include "runtime/rewrite_group.h"

namespace mlx::core::vulkan {

// Records of an open batch that are about to be replaced, in order.
struct AttentionRecords {
  uint32_t scale = none; // q times a number, with PerRowRecord
  uint32_t scores = none; // with ScoresRecord
  uint32_t mask = none; // with MaskRecord
  uint32_t softmax = none;

  bool found() const {
    return scores != none;
  }
  bool has_mask() const {
    return mask != none;
  }
  bool has_scale() const {
    return scale != none;
  }
};

// What has made `weights`, in place: nothing else has touched that range since
// the scores were written, and what they were made of is as it was. A scale, if
// the scores alone read its result.
AttentionRecords find_attention(const Records& batch, const Access& weights);

} // namespace mlx::core::vulkan
