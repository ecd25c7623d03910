// variants: T=f32,f16,bf16 BITS=2,3,4,5,6,8 GROUP=64 FP=0 GLOBAL=0 ROUNDTRIP=0 ; T=f32 BITS=1 GROUP=32,128 FP=0 GLOBAL=0 ROUNDTRIP=0 ; T=f32,bf16 BITS=4 GROUP=16 FP=1 GLOBAL=0,1 ROUNDTRIP=0,1 ; T=f16 BITS=4,8 GROUP=32 FP=1 GLOBAL=0 ROUNDTRIP=0,1
// One invocation quantizes one group: no two of them write the same word.
// ROUNDTRIP writes the dequantized values instead, in place if the host wants.
#include "common/types.glsl"
#include "common/math.glsl"
#include "quant/fp8.glsl"

#if GLOBAL
#define GLOBAL_ARG Ptr_f32 global;
#else
#define GLOBAL_ARG
#endif
#if ROUNDTRIP
#define OUT_ARGS T_PTR y;
#elif FP
#define OUT_ARGS Ptr_u32 codes; Ptr_u8 scales;
#else
#define OUT_ARGS Ptr_u32 codes; T_PTR scales; T_PTR biases;
#endif
#define ARGS T_PTR x; GLOBAL_ARG OUT_ARGS uint groups;
#include "common/args.glsl"

layout(local_size_x = 64) in;

#if FP
const float FP_MAX = BITS == 4 ? 6.0 : 448.0;

void quantize_group(uint group) {
  uint64_t first = uint64_t(group) * GROUP;
  float top = 0.0;
  for (uint i = 0; i < GROUP; ++i) {
    float v = abs(load(A.x, first + i));
    top = v > top ? v : top;
  }
  precise float scale = math_divide(top, FP_MAX);
#if GROUP == 16
#if GLOBAL
  precise float encode = math_divide(2688.0, load(A.global, 0));
  scale = scale * encode;
#else
  const float encode = 1.0;
#endif
  uint scale_code = f32_to_e4m3(scale);
  float decoded = e4m3_to_f32(scale_code);
  precise float factor = decoded == 0.0 ? 0.0 : math_divide(encode, decoded);
  precise float back = math_divide(decoded, encode);
#else
  uint scale_code = f32_to_e8m0_up(scale);
  float back = e8m0_to_f32(scale_code);
#endif
#if !ROUNDTRIP
  store(A.scales, group, uint8_t(scale_code));
#endif
  const uint per_word = 32 / BITS;
  for (uint w = 0; w < GROUP / per_word; ++w) {
    uint word = 0;
    for (uint i = 0; i < per_word; ++i) {
      uint64_t at = first + w * per_word + i;
      float v = load(A.x, at);
#if GROUP == 16
      precise float scaled = v * factor;
#else
      float scaled = divide_by_e8m0(v, scale_code);
#endif
#if BITS == 4
      uint code = f32_to_e2m1(scaled);
      float value = e2m1_to_f32(code);
#else
      uint code = f32_to_e4m3(scaled);
      float value = e4m3_to_f32(code);
#endif
#if ROUNDTRIP
      store(A.y, at, back * value);
#else
      word |= code << (i * BITS);
#endif
    }
#if !ROUNDTRIP
    store(A.codes, uint64_t(group) * (GROUP / per_word) + w, word);
#endif
  }
}
#else
void quantize_group(uint group) {
  uint64_t first = uint64_t(group) * GROUP;
  const float bins = float((1 << BITS) - 1);
  const float eps = 1e-7;
  float low = INF_F;
  float high = -INF_F;
  for (uint i = 0; i < GROUP; ++i) {
    float v = load(A.x, first + i);
    high = v > high ? v : high;
    low = v < low ? v : low;
  }
#if BITS == 1
  precise float scale = max(high - low, eps);
  float bias = low;
#else
  // The edge of larger magnitude is a code's exact value, and so is zero.
  bool negative = abs(low) > abs(high);
  precise float scale = max(math_divide(high - low, bins), eps);
  scale = negative ? scale : -scale;
  float edge = negative ? low : high;
  precise float q0 = roundEven(math_divide(edge, scale));
  float bias = 0.0;
  if (q0 != 0.0) {
    scale = math_divide(edge, q0);
    bias = edge;
  }
#endif
  store(A.scales, group, scale);
  store(A.biases, group, bias);
  uint64_t words = uint64_t(group) * (GROUP * BITS / 32);
  // 32 codes at a time are BITS words.
  for (uint block = 0; block < GROUP / 32; ++block) {
    uint64_t bits = 0;
    uint filled = 0;
    for (uint i = 0; i < 32; ++i) {
      precise float v = load(A.x, first + block * 32 + i) - bias;
      precise float q = roundEven(math_divide(v, scale));
      uint code = uint(int(min(max(q, 0.0), bins)));
      bits |= uint64_t(code) << filled;
      filled += BITS;
      if (filled >= 32) {
        store(A.codes, words, uint(bits & 0xffffffffUL));
        words += 1;
        bits >>= 32;
        filled -= 32;
      }
    }
  }
}
#endif

void main() {
  uint group = thread_index();
  if (group < A.groups) {
    quantize_group(group);
  }
}
