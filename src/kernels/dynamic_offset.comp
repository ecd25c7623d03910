// Sum of index times stride: the element offset of a dynamic slice. May write
// where the indices were (a donated input): one invocation reads them all.
#include "common/types.glsl"
#include "common/index.glsl"
#include "dynamic_offset.h"
#define ARGS_BLOCK DynamicOffsetArgs
#include "common/args.glsl"

layout(local_size_x = 1) in;

void main() {
  if (group_index() == 0) {
    int64_t sum = 0;
    for (uint i = 0; i < A.count; ++i) {
      sum += int64_t(load(A.indices, i)) * A.strides[i];
    }
    store(A.offset, 0, sum);
  }
}
