// Argmin and argmax along an axis: the first of equal items, or the first NaN.
// A team of LANES invocations reduces one output, or one of `splits` parts of
// it, to y[s * outputs + o]; JOIN=1 reduces the positions in `found`.
#define WG_SIZE 256

#define ArgMin 10
#define ArgMax 11

#include "common/lanes.glsl"
#include "common/nest.glsl"
#include "common/reduce_ops.glsl"
#include "arg_reduce.h"
#define ARGS_BLOCK ArgReduceArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

const uint NOTHING = 0xffffffffu;

struct Best {
  Acc value;
  uint at;
};

Best shuffle_xor(Best b, uint mask) {
  return Best(shuffle_xor(b.value, mask), shuffle_xor(b.at, mask));
}

bool better(Acc a, Acc b) {
#if OP == ArgMin
  return less(a, b);
#else
  return less(b, a);
#endif
}

Best best_of(Best a, Best b) {
  if (a.at == NOTHING || b.at == NOTHING) {
    return Best(a.at == NOTHING ? b.value : a.value, min(a.at, b.at));
  }
  bool nan_a = is_nan(a.value), nan_b = is_nan(b.value);
  bool take_a = nan_a || nan_b
      ? nan_a && (!nan_b || a.at < b.at)
      : better(a.value, b.value) ||
          (!better(b.value, a.value) && a.at < b.at);
  return Best(take_a ? a.value : b.value, take_a ? a.at : b.at);
}

TEAM_REDUCE(team_best, Best, best_of, scratch)

void main() {
  UIndex team = UIndex(group_index()) * TEAMS + TEAM;
  UIndex part = team / UIndex(A.parts.outputs);
  UIndex o = team - part * UIndex(A.parts.outputs);
  bool live = part < UIndex(A.parts.splits);

  Best best = Best(Acc_CAST(0u), NOTHING);
  if (live) {
    Index base;
    NEST_OFFSET(base, o, A.kept);
    T_PTR p = MOVED(T, A.x, base);
    Index stride = Index(A.axis_stride);
#if JOIN
    for (uint s = LANE; s < uint(A.parts.extent); s += LANES) {
      uint i = load(A.found, UIndex(s) * UIndex(A.parts.outputs) + o);
      best = best_of(best, Best(Acc_CAST(load(p, Index(i) * stride)), i));
    }
#else
    uint i = uint(part) * uint(A.parts.chunk);
    uint end = min(i + uint(A.parts.chunk), uint(A.parts.extent));
    i += LANE;
    for (; i + 3 * LANES < end; i += 4 * LANES) {
      Best a = Best(Acc_CAST(load(p, Index(i) * stride)), i);
      Best b = Best(Acc_CAST(load(p, Index(i + LANES) * stride)), i + LANES);
      Best c = Best(
          Acc_CAST(load(p, Index(i + 2 * LANES) * stride)), i + 2 * LANES);
      Best d = Best(
          Acc_CAST(load(p, Index(i + 3 * LANES) * stride)), i + 3 * LANES);
      best = best_of(best, best_of(best_of(a, b), best_of(c, d)));
    }
    for (; i < end; i += LANES) {
      best =
          best_of(best, Best(Acc_CAST(load(p, Index(i) * stride)), i));
    }
#endif
  }
  best = team_best(best);
  if (live && LANE == 0) {
    store(A.y, team, best.at);
  }
}
