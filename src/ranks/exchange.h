// Splits a collective operation into pieces, each a rendezvous, that fit a slot
// of the shared memory. Pure, except for the numbers that it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/exchange.h"
#include "ranks/carrier.h"
#include "ranks/host_group.h"
#include "runtime/batch.h"

namespace mlx::core::vulkan {

// Kinds of plans; the type is added.
enum class Collective : uint32_t { Sum, Min, Max, Gather, Scatter, Send };

// TransferPlan::kind
inline uint32_t kind_of(Collective kind, Type type) {
  return uint32_t(kind) << 8 | uint32_t(type);
}

struct Exchange {
  Collective kind;
  const char* name; // a string literal, for messages
  ExchangeVariant variant; // QUADS is chosen by steps_of()
  uint64_t items; // of a part
  uint32_t parts = 1;
  int itemsize;
};

// One dispatch. `args.from` is an offset in the shared memory; the caller makes
// it an address, there or, for a Meet, in the carrier's copy.
struct ExchangeStep {
  Rendezvous rendezvous;
  ExchangeArgs args;
  Grid grid;
  Carrier::Job job; // of a Meet
};

// Whether devices can wait for the exchange: its packs fit the carrier.
bool fits_carrier(const Exchange& e);

// The steps in their order. Takes a number of `group` for each piece: if one is
// then not encoded, the group must fail. `meets`: devices wait; `cores`: Caps.
std::vector<ExchangeStep>
steps_of(Exchange& e, HostGroup& group, bool meets, uint32_t cores);

} // namespace mlx::core::vulkan
