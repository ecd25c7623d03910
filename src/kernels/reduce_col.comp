// Neighbouring outputs are neighbours in memory: consecutive invocations take
// consecutive outputs, and LANES rows of them share a workgroup. Part s of
// output o goes to y[s * outputs + o]. NDIM=1: outputs are contiguous and
// elements evenly spaced; else two nests of up to 16 dimensions.
#define WG_SIZE 256
#define COLUMNS (WG_SIZE / LANES)

#include "common/reduce_operands.glsl"

layout(local_size_x = WG_SIZE) in;

shared Acc tile[WG_SIZE];

void main() {
  uint t = gl_LocalInvocationIndex;
  uint lane = t / COLUMNS;
  UIndex blocks = (UIndex(A.parts.outputs) + (COLUMNS - 1)) / COLUMNS;
  UIndex group = UIndex(group_index());
  UIndex part = group / blocks;
  UIndex o = (group - part * blocks) * COLUMNS + t % COLUMNS;
  bool live = part < UIndex(A.parts.splits) && o < UIndex(A.parts.outputs);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.parts.chunk);
    UIndex end = min(i + UIndex(A.parts.chunk), UIndex(A.parts.extent));
    acc = reduce_elements(acc, output_elements(o), i + lane, end);
  }
#if LANES > 1
  tile[t] = acc;
  barrier();
  for (uint reach = LANES / 2; reach > 0; reach /= 2) {
    if (lane < reach) {
      acc = reduce_op(acc, tile[t + reach * COLUMNS]);
      tile[t] = acc;
    }
    barrier();
  }
#endif
  if (live && lane == 0) {
    store(A.y, part * UIndex(A.parts.outputs) + o, U_CAST(acc));
  }
}
