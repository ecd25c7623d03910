// variants: T=f32,f16,bf16 U=f32 Acc=f32 OP=Sum LANES=1,32,256 NDIM=1 VEC=0,1; T=i8 U=i8 Acc=i32 OP=Min,Max LANES=32 NDIM=16 VEC=0; T=u16 U=u16 Acc=u32 OP=Min,Max LANES=32 NDIM=1 VEC=0; T=bool,f16,i64,c64 U=bool Acc=u32 OP=And,Or LANES=32 NDIM=1 VEC=0; T=i64 U=i64 Acc=i64 OP=Sum,Prod,Min,Max LANES=256 NDIM=16 VEC=0; T=u64 U=u64 Acc=u64 OP=Sum,Prod,Min,Max LANES=32 NDIM=1 VEC=0; T=c64 U=c64 Acc=c64 OP=Sum,Prod,Min,Max LANES=32,256 NDIM=1 VEC=0 LARGE=1
// A team of LANES invocations reduces one output, or one of `splits` parts of
// it: part s of output o goes to y[s * outputs + o]. NDIM=1: outputs and
// elements are evenly spaced; else two nests of up to 16 dimensions.
#define WG_SIZE 256

#include "common/index.glsl"
#include "common/lanes.glsl"
#include "common/reduce_ops.glsl"
#include "common/vec4.glsl"

#if NDIM == 1
#define NEST int64_t kept_stride; int64_t red_stride;
#else
#define NEST                                                                  \
  int kept_ndim; int red_ndim; int kept_shape[NDIM]; int red_shape[NDIM];     \
  int64_t kept_strides[NDIM]; int64_t red_strides[NDIM];
#endif
#define ARGS                                                                  \
  T_PTR x; U_PTR y; uint64_t outputs; uint64_t extent; uint64_t chunk;        \
  uint64_t splits; NEST
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_reduce, Acc, reduce_op, scratch)

#if VEC
Acc reduce4(vec4 v) {
  return reduce_op(reduce_op(v.x, v.y), reduce_op(v.z, v.w));
}
#endif

void main() {
  UIndex team = UIndex(group_index()) * TEAMS + TEAM;
  UIndex part = team / UIndex(A.outputs);
  UIndex o = team - part * UIndex(A.outputs);
  bool live = part < UIndex(A.splits);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.chunk);
    UIndex end = min(i + UIndex(A.chunk), UIndex(A.extent));
#if NDIM == 1
    Index stride = Index(A.red_stride);
    T_PTR p =
        T_PTR(uint64_t(A.x) + uint64_t(int64_t(o) * A.kept_stride * T_SIZE));
#define AT(i) Acc(LIFT(load(p, Index(i) * stride)))
#else
    Index base;
    OFFSET(base, o, A.kept_shape, A.kept_strides, A.kept_ndim);
    T_PTR p = T_PTR(uint64_t(A.x) + uint64_t(int64_t(base) * T_SIZE));
#endif
#if VEC
    i += LANE * 4;
    for (; i + 4 * LANES < end; i += 8 * LANES) {
      vec4 a = load_vec4(p, uint(i));
      vec4 b = load_vec4(p, uint(i + 4 * LANES));
      acc = reduce_op(acc, reduce_op(reduce4(a), reduce4(b)));
    }
    if (i < end) {
      acc = reduce_op(acc, reduce4(load_vec4(p, uint(i))));
    }
#else
    i += LANE;
#if NDIM == 1
    for (; i + 3 * LANES < end; i += 4 * LANES) {
      Acc a = AT(i), b = AT(i + LANES);
      Acc c = AT(i + 2 * LANES), d = AT(i + 3 * LANES);
      acc = reduce_op(acc, reduce_op(reduce_op(a, b), reduce_op(c, d)));
    }
#endif
    for (; i < end; i += LANES) {
#if NDIM == 1
      acc = reduce_op(acc, AT(i));
#else
      Index at;
      OFFSET(at, i, A.red_shape, A.red_strides, A.red_ndim);
      acc = reduce_op(acc, Acc(LIFT(load(p, at))));
#endif
    }
#endif
  }
  acc = team_reduce(acc);
  if (live && LANE == 0) {
    store(A.y, team, U_CAST(acc));
  }
}
