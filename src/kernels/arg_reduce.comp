// variants: T=f32,f16,bf16 Acc=f32 OP=ArgMax LANES=1,32,256 NDIM=1 PARTS=0; T=f32 Acc=f32 OP=ArgMin LANES=256 NDIM=16 PARTS=1; T=bool,u8 Acc=u32 OP=ArgMin LANES=32 NDIM=16 PARTS=0; T=i64 Acc=i64 OP=ArgMax LANES=256 NDIM=1 PARTS=0,1; T=u64 Acc=u64 OP=ArgMin LANES=32 NDIM=1 PARTS=0 LARGE=1; T=c64 Acc=c64 OP=ArgMax,ArgMin LANES=32 NDIM=1 PARTS=0
// The position of the smallest or largest item along an axis: the first of
// equal ones, and the first NaN if there is one. A team of LANES invocations
// finds one position, or that of one of `splits` parts, into
// y[s * outputs + o]; PARTS=1 chooses among such positions, given in `found`.
#define WG_SIZE 256

#define ArgMin 10
#define ArgMax 11

#include "common/index.glsl"
#include "common/lanes.glsl"
#include "common/reduce_ops.glsl"

#if NDIM == 1
#define NEST int64_t kept_stride;
#else
#define NEST int64_t ndim; int shape[NDIM]; int64_t strides[NDIM];
#endif
#if PARTS
#define FOUND Ptr_u32 found;
#else
#define FOUND
#endif
#define ARGS                                                                  \
  T_PTR x; FOUND Ptr_u32 y; uint64_t outputs; uint64_t extent;                \
  uint64_t chunk; uint64_t splits; int64_t axis_stride; NEST
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
  bool nan_a = nan_bits(a.value), nan_b = nan_bits(b.value);
  bool take_a = nan_a || nan_b
      ? nan_a && (!nan_b || a.at < b.at)
      : better(a.value, b.value) ||
          (!better(b.value, a.value) && a.at < b.at);
  return Best(take_a ? a.value : b.value, take_a ? a.at : b.at);
}

TEAM_REDUCE(team_best, Best, best_of, scratch)

void main() {
  UIndex team = UIndex(group_index()) * TEAMS + TEAM;
  UIndex part = team / UIndex(A.outputs);
  UIndex o = team - part * UIndex(A.outputs);
  bool live = part < UIndex(A.splits);

  Best best = Best(Acc_CAST(0u), NOTHING);
  if (live) {
#if NDIM == 1
    int64_t base = int64_t(o) * A.kept_stride;
#else
    Index base;
    OFFSET(base, o, A.shape, A.strides, A.ndim);
#endif
    T_PTR p = MOVED(T, A.x, base);
    Index stride = Index(A.axis_stride);
#if PARTS
    for (uint s = LANE; s < uint(A.extent); s += LANES) {
      uint i = load(A.found, UIndex(s) * UIndex(A.outputs) + o);
      best = best_of(best, Best(Acc_CAST(load(p, Index(i) * stride)), i));
    }
#else
    uint i = uint(part) * uint(A.chunk);
    uint end = min(i + uint(A.chunk), uint(A.extent));
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
