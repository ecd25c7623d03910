// Copies a stack of matrices, of which some are in slots of a cache
// (expert_slots.h). Invocations keep several loads in flight: the bus is slow.
#include "common/types.glsl"
#include "quant/expert_slots.h"
#define ARGS_BLOCK AssembleExpertsArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

const uint LOADS = 8;

void main() {
  uint begin = group_index() * (WG * LOADS) + gl_LocalInvocationIndex;
  uvec4 kept[LOADS];
  [[unroll]] for (uint k = 0; k < LOADS; ++k) {
    uint i = begin + k * WG;
    if (i < A.count) {
      uint expert = i / A.words;
      uint slot = load(A.state, 1u + expert);
      uint in_slots = i - (expert + 1u - slot) * A.words; // may wrap
      kept[k] = slot == 0u ? A.x.v[i] : A.slots.v[in_slots];
    }
  }
  [[unroll]] for (uint k = 0; k < LOADS; ++k) {
    uint i = begin + k * WG;
    if (i < A.count) {
      A.y.v[i] = kept[k];
    }
  }
}
