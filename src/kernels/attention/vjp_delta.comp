// delta = rowsum(dO * O), which equals rowsum(p * dp). Eight invocations reduce
// a row through shared memory, independent of the subgroup size.
#include "attention/raw.glsl"
#include "attention/vjp_delta.h"
#define ARGS_BLOCK DeltaArgs
#include "common/args.glsl"

#define WG 64
#define LANES 8
layout(local_size_x = WG) in;

shared float parts[WG];

void main() {
  uint t = gl_LocalInvocationIndex;
  uint row = group_index() * (WG / LANES) + t / LANES;
  float sum = 0.0;
  if (row < A.rows) {
    uint query = row % A.queries;
    uint head = row / A.queries % A.heads;
    uint batch = row / A.queries / A.heads;
    int64_t y = head_offset(A.y_strides, batch, head) +
        int64_t(query) * A.y_strides.row;
    int64_t c = head_offset(A.cotan_strides, batch, head) +
        int64_t(query) * A.cotan_strides.row;
    for (uint d = t % LANES * E; d < A.value_dim; d += LANES * E) {
      RAW a = RAW_AT(MOVED(T, A.y, y + int64_t(d)));
      RAW b = RAW_AT(MOVED(T, A.cotan, c + int64_t(d)));
      [[unroll]] for (uint i = 0; i < E / STEP; ++i) {
        sum = dot_add(floats(a, i), floats(b, i), sum);
      }
    }
  }
  parts[t] = sum;
  barrier();
  if (row < A.rows && t % LANES == 0) {
    for (uint i = 1; i < LANES; ++i) {
      sum += parts[t + i];
    }
    store(A.delta, row, sum);
  }
}
