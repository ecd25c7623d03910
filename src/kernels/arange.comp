#include "common/index.glsl"
#include "common/dense.h"
#include "common/types.glsl"
#include "arange.h"
#define ARGS_BLOCK ArangeArgs
#include "common/args.glsl"

layout(local_size_x = DENSE_GROUP) in;

void main() {
  UIndex n = UIndex(A.n);
  UIndex stride = dense_stride(n);
  for (UIndex i = flat_index(); i < n; i += stride) {
    precise Step v = A.start + Step(i) * A.step;
    store(A.y, i, T_CAST(v));
  }
}
