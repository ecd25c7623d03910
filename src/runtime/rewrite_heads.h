// What becomes of heads, read from records: for the rule of rewrite_rope.cpp.
// All return false where the record is of another form; what they have written
// to the chain until then is of no use.
#pragma once

#include "runtime/rewrite_group.h"

namespace mlx::core::vulkan {

inline bool operator==(const RopeStrides& a, const RopeStrides& b) {
  return a.b == b.b && a.n == b.n && a.t == b.t;
}

// Where the operands of a record lie that are heads: its first input, or its
// output.
struct Heads {
  uint64_t address = 0;
  RopeStrides strides{};
};
Heads heads_of(const HeadChain& c, uint32_t record, bool output);

// Begins the chain with a RopeRecord.
bool rope_of(const Records& p, uint32_t record, HeadChain& c);

// Makes a NormRecord, which wrote what the chain turns, its first record: each
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

// Makes the copy, which begins where the chain wrote what it has turned, its
// last record: of all of that, in whatever order.
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
