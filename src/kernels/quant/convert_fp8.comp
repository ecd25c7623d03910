// Converts floats to e4m3 and back.
#include "common/types.glsl"
#include "quant/convert_fp8.h"
#include "quant/small_floats.glsl"
#define ARGS_BLOCK ConvertFp8Args
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
