// variants: T=f32,f16,bf16 U=f32 Acc=f32 OP=Sum LANES=1,8 NDIM=1; T=f32 U=bf16 Acc=f32 OP=Sum LANES=8 NDIM=16; T=i8 U=i8 Acc=i32 OP=Min,Max LANES=8 NDIM=16; T=bool,c64 U=bool Acc=u32 OP=And,Or LANES=8 NDIM=1; T=i64 U=i64 Acc=i64 OP=Sum,Prod,Min,Max LANES=8 NDIM=16 LARGE=1; T=c64 U=c64 Acc=c64 OP=Sum,Prod,Min,Max LANES=8 NDIM=1
// Neighbouring outputs are neighbours in memory: consecutive invocations take
// consecutive outputs, and LANES rows of them share a workgroup. Part s of
// output o goes to y[s * outputs + o]. NDIM=1: outputs are contiguous and
// elements evenly spaced; else two nests of up to 16 dimensions.
#define WG_SIZE 256
#define COLUMNS (WG_SIZE / LANES)

#include "common/index.glsl"
#include "common/reduce_ops.glsl"

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

shared Acc tile[WG_SIZE];

void main() {
  uint t = gl_LocalInvocationIndex;
  uint lane = t / COLUMNS;
  UIndex blocks = (UIndex(A.outputs) + (COLUMNS - 1)) / COLUMNS;
  UIndex group = UIndex(group_index());
  UIndex part = group / blocks;
  UIndex o = (group - part * blocks) * COLUMNS + t % COLUMNS;
  bool live = part < UIndex(A.splits) && o < UIndex(A.outputs);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.chunk);
    UIndex end = min(i + UIndex(A.chunk), UIndex(A.extent));
    i += lane;
#if NDIM == 1
    Index stride = Index(A.red_stride);
    T_PTR p =
        T_PTR(uint64_t(A.x) + uint64_t(int64_t(o) * A.kept_stride * T_SIZE));
#define AT(i) Acc(LIFT(load(p, Index(i) * stride)))
    for (; i + 3 * LANES < end; i += 4 * LANES) {
      Acc a = AT(i), b = AT(i + LANES);
      Acc c = AT(i + 2 * LANES), d = AT(i + 3 * LANES);
      acc = reduce_op(acc, reduce_op(reduce_op(a, b), reduce_op(c, d)));
    }
    for (; i < end; i += LANES) {
      acc = reduce_op(acc, AT(i));
    }
#else
    Index base;
    OFFSET(base, o, A.kept_shape, A.kept_strides, A.kept_ndim);
    T_PTR p = T_PTR(uint64_t(A.x) + uint64_t(int64_t(base) * T_SIZE));
    for (; i < end; i += LANES) {
      Index at;
      OFFSET(at, i, A.red_shape, A.red_strides, A.red_ndim);
      acc = reduce_op(acc, Acc(LIFT(load(p, at))));
    }
#endif
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
    store(A.y, part * UIndex(A.outputs) + o, U_CAST(acc));
  }
}
