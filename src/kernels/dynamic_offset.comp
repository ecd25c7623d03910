// variants: I=u8,i32,u64,i64
// Sum of index times stride: the element offset of a dynamic slice. May write
// where the indices were (a donated input): one invocation reads them all.
#include "common/types.glsl"
#include "common/index.glsl"

#define ARGS                                                                  \
  I_PTR indices;                                                              \
  Ptr_i64 offset;                                                             \
  int64_t strides[MAX_NDIM];                                                  \
  uint count;                                                                 \
  uint pad;
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
