// A cache of experts on the card, for stacks of quantized matrices that stay in
// the host's memory: the design is docs/lab/2026-11-28-cache-of-experts.md.
//
// The stacks of a layer share one cache: those that are read by the same
// indices in turn. The first product gives as many experts slots as there are.
// In decode, the first product with new indices looks them up and copies
// the experts that have no slot, for all stacks; the device does both. Products
// then read slots in place of stacks and indices. The same kernels run, so
// results are those of the stacks, bit for bit.
//
// A cache belongs to the stream that used it last. Another one takes it once
// those batches are on the queue; until then it reads in place.
#pragma once

#include "ops/quant/qmm.h"

namespace mlx::core::vulkan {

// Takes room on the card for so many matrices of a stack, or of its scales or
// biases, that lies in the host's memory: in its first steps a program runs
// ahead of the card, and would fill it.
void cache_experts(const array& stack, uint32_t slots);

// Makes a product by index, with so many rows of x in all, read its operands on
// the card if they have a cache: slots, if there are as many as indices; a copy
// of the stack that takes from slots what is there, if rows repay it.
void use_cached_experts(StreamEncoder& enc, QuantOperands& o, uint64_t rows);

} // namespace mlx::core::vulkan
