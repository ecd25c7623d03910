// variants: NATIVE_F16=1 NATIVE_F16_ROUNDING=1 BACK=0,1
// Known-answer probe of the driver's float -> float16 conversion, and of going
// BACK at once.
#include "common/types.glsl"
#if BACK
#define Y_PTR Ptr_f32
#define CONVERT round_f16
#else
#define Y_PTR Ptr_u16
#define CONVERT f32_to_f16
#endif
#define ARGS Ptr_f32 x; Y_PTR y; uint n;
#include "common/args.glsl"

layout(local_size_x = 32) in;

void main() {
  uint i = thread_index();
  if (i < A.n) {
    store(A.y, i, CONVERT(load(A.x, i)));
  }
}
