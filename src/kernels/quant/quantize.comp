// Quantizes one group per invocation; groups never share a word. ROUNDTRIP
// writes the dequantized values instead, optionally in place.
#include "common/math.glsl"
#include "quant/dequant.glsl"
#include "quant/quantize.h"
#define ARGS_BLOCK QuantizeArgs
#include "common/args.glsl"

layout(local_size_x = 64) in;

#if CODE != CODE_INTEGER
void quantize_group(uint group) {
  uint64_t first = uint64_t(group) * GROUP;
  float top = 0.0;
  for (uint i = 0; i < GROUP; ++i) {
    float v = abs(load(A.x, first + i));
    top = v > top ? v : top;
  }
  precise float scale = math_divide(top, CODE_MAX);
#if SCALE == SCALE_E4M3
#if SIDE == SIDE_GLOBAL
  precise float encode = math_divide(GLOBAL_UNIT, load(A.global_scale, 0));
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
#if SCALE == SCALE_E4M3
      precise float scaled = v * factor;
#else
      float scaled = divide_by_e8m0(v, scale_code);
#endif
      uint code = code_of(scaled);
#if ROUNDTRIP
      store(A.y, at, back * code_value(code));
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
  // The bound of larger magnitude and zero are represented exactly.
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
  // 32 codes take BITS words.
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
