// Probes whether invocation i is lane i % gl_SubgroupSize of subgroup i /
// gl_SubgroupSize, as common/lanes.glsl assumes. Writes the sum of x, or 0
// where an invocation is elsewhere.
#include "common/types.glsl"
#define X_PTR Ptr_u32
#define Y_PTR Ptr_u32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

#define LANES WG_SIZE
#include "common/lanes.glsl"

uint add(uint a, uint b) {
  return a + b;
}
TEAM_REDUCE(total, uint, add, sums)

layout(local_size_x = WG_SIZE) in;

void main() {
  uint i = gl_LocalInvocationIndex;
  uint sum = total(i < A.n ? load(A.x, i) : 0u);
  bool in_place = gl_SubgroupInvocationID == i % gl_SubgroupSize &&
      gl_SubgroupID == i / gl_SubgroupSize;
  if (i < A.n) {
    store(A.y, i, in_place ? sum : 0u);
  }
}
