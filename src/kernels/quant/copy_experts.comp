// Copies experts from the host's memory to the slots of a cache
// (expert_slots.h). Invocations keep several loads in flight: the bus is slow.
#include "common/types.glsl"
#include "quant/expert_slots.h"
#define ARGS_BLOCK CopyExpertsArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

const uint LOADS = 8;

// Copies 16-byte words of the group's part, of which this array's begin at
// `first`, from matrix `from` of x to matrix `to` of y.
void copy(
    Ptr_u32x4 x, uint from, Ptr_u32x4 y, uint to, uint first, uint words) {
  uint begin = group_index() % A.parts * (gl_WorkGroupSize.x * LOADS) +
      gl_LocalInvocationIndex;
  x = Ptr_u32x4(uint64_t(x) + uint64_t(from) * words * 16ul);
  y = Ptr_u32x4(uint64_t(y) + uint64_t(to) * words * 16ul);
  uvec4 kept[LOADS];
  [[unroll]] for (uint k = 0; k < LOADS; ++k) {
    uint i = begin + k * gl_WorkGroupSize.x - first;
    if (i < words) { // wraps before `first`
      kept[k] = x.v[i];
    }
  }
  [[unroll]] for (uint k = 0; k < LOADS; ++k) {
    uint i = begin + k * gl_WorkGroupSize.x - first;
    if (i < words) {
      y.v[i] = kept[k];
    }
  }
}

void main() {
  uint item = group_index() / A.parts;
  if (group_index() >= A.groups) {
    return;
  }
  uint scales = A.words[0];
  uint side = scales + A.words[1];
  uint e = load(A.moves, 2u * item);
  uint s = load(A.moves, 2u * item + 1u);
  if (e != NO_EXPERT) {
    copy(A.w, e, A.y_w, s, 0u, A.words[0]);
    copy(A.scales, e, A.y_scales, s, scales, A.words[1]);
    copy(A.side, e, A.y_side, s, side, A.words[2]);
  }
}
