// variants: T=f32,f16,bf16 U=f32 Acc=f32 OP=Sum LANES=1,8 NDIM=1; T=f32 U=bf16 Acc=f32 OP=Sum LANES=8 NDIM=16; T=i8 U=i8 Acc=i32 OP=Min,Max LANES=8 NDIM=16; T=bool,c64 U=bool Acc=u32 OP=And,Or LANES=8 NDIM=1; T=i64 U=i64 Acc=i64 OP=Sum,Prod,Min,Max LANES=8 NDIM=16 LARGE=1; T=c64 U=c64 Acc=c64 OP=Sum,Prod,Min,Max LANES=8 NDIM=1
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
  UIndex blocks = (UIndex(A.outputs) + (COLUMNS - 1)) / COLUMNS;
  UIndex group = UIndex(group_index());
  UIndex part = group / blocks;
  UIndex o = (group - part * blocks) * COLUMNS + t % COLUMNS;
  bool live = part < UIndex(A.splits) && o < UIndex(A.outputs);

  Acc acc = neutral();
  if (live) {
    UIndex i = part * UIndex(A.chunk);
    UIndex end = min(i + UIndex(A.chunk), UIndex(A.extent));
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
    store(A.y, part * UIndex(A.outputs) + o, U_CAST(acc));
  }
}
