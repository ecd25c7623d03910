// variants: NATIVE_F16=1
// Known-answer probe of the driver's float -> float16 conversion.
#include "common/types.glsl"
#define ARGS Ptr_f32 x; Ptr_u16 y; uint n;
#include "common/args.glsl"

layout(local_size_x = 32) in;

void main() {
  uint i = thread_index();
  if (i < A.n) {
    store(A.y, i, f32_to_f16(load(A.x, i)));
  }
}
