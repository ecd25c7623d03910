// A cache of experts on the card, for stacks of quantized matrices that stay in
// the host's memory: the design is docs/lab/2026-11-28-cache-of-experts.md.
//
// The stacks of a layer share one cache: those that are read by the same
// indices in turn. The first product with new indices looks them up and copies
// the experts that have no slot, for all stacks; the device does both. Products
// then read slots in place of stacks and indices. The same kernels run, so
// results are those of the stacks, bit for bit.
//
// A cache belongs to the stream that used it last. Another one takes it once
// those batches are on the queue; until then it reads in place.
#pragma once

#include "ops/quant/qmm.h"

namespace mlx::core::vulkan {

// Gives the stack of matrices in `buffer`, which a card reads in place, a cache
// of so many.
void cache_experts(Buffer& buffer, uint32_t slots);

// Makes a product by index read slots in place of its operands if they have a
// cache with as many slots as there are indices. A longer product reads the
// stack, or a copy (fetched_weights()).
void use_cached_experts(StreamEncoder& enc, QuantOperands& o);

} // namespace mlx::core::vulkan
