// Probes the driver's float32 to float16 conversion, with BACK as a round trip.
#include "common/types.glsl"
#define X_PTR Ptr_f32
#if BACK
#define Y_PTR Ptr_f32
#define CONVERT round_f16
#else
#define Y_PTR Ptr_u16
#define CONVERT f32_to_f16
#endif
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

layout(local_size_x = 32) in;

void main() {
  uint i = thread_index();
  if (i < A.n) {
    // A conversion's usual input is a product.
    float one = A.n > 0u ? 1.0 : 2.0;
    store(A.y, i, CONVERT(load(A.x, i) * one));
  }
}
