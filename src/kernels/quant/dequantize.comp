// variants: T=f32,f16,bf16 BITS=2,3,4,5,6,8 GROUP=64 FP=0 GLOBAL=0 ; T=f32 BITS=1 GROUP=32,128 FP=0 GLOBAL=0 ; T=f32,bf16 BITS=4 GROUP=16 FP=1 GLOBAL=0,1 ; T=f16 BITS=4,8 GROUP=32 FP=1 GLOBAL=0
// Eight elements an invocation.
#include "quant/dequant.glsl"

#if GLOBAL
#define EXTRA_ARG Ptr_f32 global;
#elif FP
#define EXTRA_ARG
#else
#define EXTRA_ARG T_PTR biases;
#endif
#define ARGS Ptr_u32 w; SCALE_PTR scales; EXTRA_ARG T_PTR y; uint units;
#include "common/args.glsl"

layout(local_size_x = 64) in;

void main() {
  uint unit = thread_index();
  if (unit < A.units) {
    // In 64 bits: the words of a large array pass 2^32 bytes.
    Ptr_u32 w = WORDS_AT(A.w, int64_t(unit / 4u) * BITS);
    uvec2 codes = load_codes8(w, unit % 4u);
    uint group = unit / (GROUP / 8);
    precise float scale = load_scale(A.scales, group);
#if GLOBAL
    scale = scale * (load(A.global, 0) / 2688.0);
#endif
#if !FP
    float bias = load(A.biases, group);
#endif
    uint64_t first = uint64_t(unit) * 8u;
    [[unroll]] for (uint k = 0; k < 8; ++k) {
      precise float v = scale * code_value(code8(codes, k));
#if !FP
      v = v + bias;
#endif
      store(A.y, first + k, v);
    }
  }
}
