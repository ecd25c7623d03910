// variants: T=f32,f16,bf16 TO_FP8=0,1
// Floats to e4m3 and back.
#include "common/types.glsl"
#include "quant/fp8.glsl"

#if TO_FP8
#define ARGS T_PTR x; Ptr_u8 y; uint64_t n;
#else
#define ARGS Ptr_u8 x; T_PTR y; uint64_t n;
#endif
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  uint64_t i = thread_index64();
  if (i < A.n) {
#if TO_FP8
    store(A.y, i, uint8_t(f32_to_e4m3(load(A.x, i))));
#else
    store(A.y, i, e4m3_to_f32(uint(load(A.x, i))));
#endif
  }
}
