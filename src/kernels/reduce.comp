// A team of LANES invocations reduces one output, or one of `splits` parts of
// it: part s of output o goes to y[s * outputs + o]. NDIM=1: outputs and
// elements are evenly spaced; else two nests of up to 16 dimensions.
#define WG_SIZE 256

#include "common/lanes.glsl"
#include "common/vec4.glsl"
#include "common/reduce_operands.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_reduce, Acc, reduce_op, scratch)

#if VEC
#define UNDER_WAY 4
Acc reduce4(vec4 v) {
  return reduce_op(reduce_op(v.x, v.y), reduce_op(v.z, v.w));
}
#endif

void main() {
  UIndex team = UIndex(group_index()) * TEAMS + TEAM;
  UIndex part = team / UIndex(A.parts.outputs);
  UIndex o = team - part * UIndex(A.parts.outputs);
  bool live = part < UIndex(A.parts.splits);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.parts.chunk);
    UIndex end = min(i + UIndex(A.parts.chunk), UIndex(A.parts.extent));
    T_PTR p = output_elements(o);
#if VEC
    const uint step = 4 * LANES;
    i += LANE * 4;
    for (; i + (UNDER_WAY - 1) * step < end; i += UNDER_WAY * step) {
      vec4 v[UNDER_WAY];
      [[unroll]] for (uint u = 0; u < UNDER_WAY; ++u) {
        v[u] = load_vec4(p, uint(i + u * step));
      }
      Acc some = reduce4(v[0]);
      [[unroll]] for (uint u = 1; u < UNDER_WAY; ++u) {
        some = reduce_op(some, reduce4(v[u]));
      }
      acc = reduce_op(acc, some);
    }
    for (; i < end; i += step) {
      acc = reduce_op(acc, reduce4(load_vec4(p, uint(i))));
    }
#else
    acc = reduce_elements(acc, p, i + LANE, end);
#endif
  }
  acc = team_reduce(acc);
  if (live && LANE == 0) {
    store(A.y, team, U_CAST(acc));
  }
}
