// Element offset of a dynamic slice (the sum of index times stride), or
// NO_OFFSET if the slice is out of bounds. The offset may alias the indices
// (donated input): one invocation reads them all.
#include "common/types.glsl"
#include "common/bounds.glsl"
#include "common/index.glsl"
#include "dynamic_offset.h"
#define ARGS_BLOCK DynamicOffsetArgs
#include "common/args.glsl"

layout(local_size_x = 1) in;

void main() {
  if (group_index() == 0) {
    int64_t sum = 0;
    bool inside = true;
    for (uint i = 0; i < A.count; ++i) {
      uint k = bounded(
          load(A.indices, i), A.sizes[i], A.starts[i], uint64_t(i), inside);
      sum += int64_t(k) * A.strides[i];
    }
    store(A.offset, 0, inside ? sum : NO_OFFSET);
  }
}
