// Looks up a cache of experts (expert_slots.h) in one workgroup.
#include "common/types.glsl"
#include "quant/expert_slots.h"
#define ARGS_BLOCK ExpertSlotsArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

#define EACH(i, count)                                                        \
  for (uint i = gl_LocalInvocationIndex; i < (count); i += WG)

shared uint slot_of[EXPERT_SLOTS_MOST];
shared uint expert_of[EXPERT_SLOTS_MOST];
shared uint used[EXPERT_SLOTS_MOST];
shared uint oldest[EXPERT_SLOTS_MOST]; // slots that this lookup does not use
shared uint wanted[EXPERT_SLOTS_MOST]; // experts without a slot, ascending
shared uint wanted_bits[EXPERT_SLOTS_MOST / 32];

uint clock;

uint bit_of(uint e) {
  return 1u << (e % 32u);
}

void read_state() {
  bool fresh = A.fresh != 0u;
  clock = fresh ? 1u : load(A.state, 0u) + 1u;
  EACH(e, A.experts) {
    slot_of[e] = fresh ? 0u : load(A.state, 1u + e);
  }
  EACH(i, EXPERT_SLOTS_MOST / 32) {
    wanted_bits[i] = 0u;
  }
  uint at = 1u + A.experts;
  EACH(s, A.slots) {
    expert_of[s] = fresh ? 0u : load(A.state, at + s);
    used[s] = fresh ? 0u : load(A.state, at + A.slots + s);
    wanted[s] = NO_EXPERT;
  }
  barrier();
}

void write_state() {
  if (gl_LocalInvocationIndex == 0u) {
    store(A.state, 0u, clock);
  }
  EACH(e, A.experts) {
    store(A.state, 1u + e, slot_of[e]);
  }
  uint at = 1u + A.experts;
  EACH(s, A.slots) {
    store(A.state, at + s, expert_of[s]);
    store(A.state, at + A.slots + s, used[s]);
  }
}

// Whether slot a was used longer ago than slot b; not if this lookup uses it.
bool before(uint a, uint b) {
  bool older = used[a] < used[b] || (used[a] == used[b] && a < b);
  return used[a] != clock && older;
}

void order_slots() {
  EACH(s, A.slots) {
    uint place = 0u;
    for (uint other = 0u; other < A.slots; ++other) {
      place += before(other, s) ? 1u : 0u;
    }
    if (used[s] != clock) {
      oldest[place] = s;
    }
  }
}

void order_wanted() {
  EACH(e, A.experts) {
    uint word = wanted_bits[e / 32u], bit = bit_of(e);
    if ((word & bit) != 0u) {
      uint place = uint(bitCount(word & (bit - 1u)));
      for (uint i = 0u; i < e / 32u; ++i) {
        place += uint(bitCount(wanted_bits[i]));
      }
      wanted[place] = e;
    }
  }
}

void list_slots() {
  EACH(s, A.slots) {
    store(A.moves, 2u * s, expert_of[s] - 1u); // NO_EXPERT if none
    store(A.moves, 2u * s + 1u, s);
  }
}

void main() {
  read_state();
  if (A.count == 0u) { // uniform
    list_slots();
    return;
  }
  EACH(i, A.count) {
    uint e = load(A.indices, i);
    uint slot = e < A.experts ? slot_of[e] : 0u;
    if (slot != 0u) {
      atomicMax(used[slot - 1u], clock);
    } else if (e < A.experts) {
      atomicOr(wanted_bits[e / 32u], bit_of(e));
    }
  }
  barrier();
  order_slots();
  order_wanted();
  barrier();
  // No more are wanted than there are slots that this lookup does not use,
  // since A.count <= A.slots.
  EACH(i, A.count) {
    uint e = wanted[i];
    uint s = 0u;
    if (e != NO_EXPERT) {
      s = oldest[i];
      if (expert_of[s] != 0u) {
        slot_of[expert_of[s] - 1u] = 0u;
      }
      expert_of[s] = e + 1u;
      slot_of[e] = s + 1u;
      used[s] = clock;
    }
    store(A.moves, 2u * i, e);
    store(A.moves, 2u * i + 1u, s);
  }
  barrier();
  write_state();
  EACH(i, A.count) {
    uint e = load(A.indices, i);
    store(A.found, i, e < A.experts ? slot_of[e] - 1u : e);
  }
}
