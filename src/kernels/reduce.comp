// A team of LANES invocations reduces one output, or one of `splits` parts of
// it: part s of output o goes to y[o * splits + s]. With NDIM=1 outputs and
// elements are evenly spaced, else strided in up to 16 dimensions each.
#define WG_SIZE 256

#include "common/lanes.glsl"
#include "common/vec4.glsl"
#include "common/reduce_operands.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_reduce, Acc, reduce_op, scratch)

#if VEC
Acc reduce4(vec4 v) {
  return reduce_op(reduce_op(v.x, v.y), reduce_op(v.z, v.w));
}
#endif

void main() {
  UIndex team = UIndex(group_index()) * TEAMS + TEAM;
  UIndex o = team / UIndex(A.parts.splits);
  UIndex part = team - o * UIndex(A.parts.splits);
  bool live = o < UIndex(A.parts.outputs);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.parts.chunk);
    UIndex end = min(i + UIndex(A.parts.chunk), UIndex(A.parts.extent));
    T_PTR p = output_elements(o);
#if VEC
    i += LANE * 4;
#if LANES == 32 // a row of 512 items in one iteration
    for (; i + 12 * LANES < end; i += 16 * LANES) {
      Acc four[4];
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        four[c] = reduce4(load_vec4(p, uint(i + c * 4 * LANES)));
      }
      acc = reduce_op(
          acc, reduce_op(reduce_op(four[0], four[1]), reduce_op(four[2], four[3])));
    }
#endif
    for (; i + 4 * LANES < end; i += 8 * LANES) {
      vec4 a = load_vec4(p, uint(i));
      vec4 b = load_vec4(p, uint(i + 4 * LANES));
      acc = reduce_op(acc, reduce_op(reduce4(a), reduce4(b)));
    }
    if (i < end) {
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
