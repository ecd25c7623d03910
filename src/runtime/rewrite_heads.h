// Reads chains of heads from records, for the rule of rewrite_rope.cpp. All
// functions return false where the record has another form; the chain is then
// invalid.
#pragma once

#include "runtime/rewrite.h"

namespace mlx::core::vulkan {

inline bool operator==(const RopeStrides& a, const RopeStrides& b) {
  return a.b == b.b && a.n == b.n && a.t == b.t;
}

// The place of the heads that a record reads as its first input, or writes as
// its output.
struct Heads {
  uint64_t address = 0;
  RopeStrides strides{};
};
Heads heads_of(const HeadChain& c, uint32_t record, bool output);

// Begins the chain with a RopeRecord.
bool rope_of(const Records& p, uint32_t record, HeadChain& c);

// Puts a NormRecord, whose output the chain rotates, at the chain's start: each
// head is a row of it.
bool add_norm(const Records& p, uint32_t record, Type t, HeadChain& c);

// A copy in items: addresses, and axes of which the last is contiguous.
struct Walk {
  struct Axis {
    int64_t extent, in, out;
  };
  uint64_t src, dst;
  Axis axes[4];
  int ndim;
};
bool copy_of(const Records& p, uint32_t record, Type t, Walk& w);

// Puts a copy at the chain's end. It copies all of the chain's rotated heads,
// in any order.
bool add_copy(uint32_t record, Walk w, Type t, HeadChain& c);

// Begins the chain with a copy of `most` items at most, in rows of D items.
bool copied_heads(
    uint32_t record,
    const Walk& w,
    Type t,
    uint32_t D,
    int64_t most,
    HeadChain& c);

// Whether all of the chain can be accessed four items at a time, as the records
// themselves do.
bool by_fours(const HeadChain& c, Type t);

} // namespace mlx::core::vulkan
