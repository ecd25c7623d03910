// Eight elements an invocation.
#include "common/vector.glsl"
#include "quant/dequant.glsl"
#include "quant/quantize.h"
#define ARGS_BLOCK DequantizeArgs
#include "common/args.glsl"

layout(local_size_x = 64) in;

void main() {
  uint unit = thread_index();
  if (unit < A.units) {
    // In 64 bits: the words of a large array pass 2^32 bytes.
    Ptr_u32 w = MOVED(WORD, A.w, int64_t(unit / 4u) * BITS);
    uvec2 codes = load_codes8(w, unit % 4u);
    uint group = unit / (GROUP / 8);
    precise float scale = load_scale(A.scales, group);
#if SIDE == SIDE_GLOBAL
    scale = scale * (load(A.global_scale, 0) / GLOBAL_UNIT);
#endif
#if SIDE == SIDE_BIASES
    float bias = load(A.biases, group);
#endif
    [[unroll]] for (uint half_unit = 0; half_unit < 2; ++half_unit) {
      float four[4];
      [[unroll]] for (uint k = 0; k < 4; ++k) {
        precise float v = scale * code_value(code8(codes, 4 * half_unit + k));
#if SIDE == SIDE_BIASES
        v = v + bias;
#endif
        four[k] = v;
      }
      STORE_FOUR(T_PTR, A.y, 2 * uint64_t(unit) + half_unit, four);
    }
  }
}
