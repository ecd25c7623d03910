// Quantizes a group by LANES invocations, each of which holds ITEMS of its
// items; neither groups nor invocations share a word of codes. ROUNDTRIP writes
// the dequantized values instead, optionally in place.
#include "common/math.glsl"
#include "common/vector.glsl"
#include "quant/dequant.glsl"
#include "quant/quantize.h"
#define ARGS_BLOCK QuantizeArgs
#include "common/args.glsl"

layout(local_size_x = 64) in;

#define ITEMS (GROUP / LANES)
#define WORDS (ITEMS * BITS / 32)

float x[ITEMS];
uint codes[WORDS];

// Items from `first` on.
void load_items(uint64_t first) {
#if VEC
  [[unroll]] for (uint i = 0; i < ITEMS; i += 4) {
    float four[4] = LOAD_FOUR(T_PTR, A.x, (first + i) / 4);
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      x[i + j] = four[j];
    }
  }
#else
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    x[i] = load(A.x, first + i);
  }
#endif
}

#if !ROUNDTRIP
void set_code(uint i, uint code) {
  uint at = i * BITS;
  codes[at / 32] |= code << at % 32;
  if (at % 32 + BITS > 32) {
    codes[(at + BITS - 1) / 32] |= code >> (32 - at % 32);
  }
}

// Words from `first` on, a multiple of WORDS.
void store_codes(uint64_t first) {
#if WORDS % 4 == 0
  [[unroll]] for (uint w = 0; w < WORDS; w += 4) {
    Ptr_u32x4(uint64_t(A.codes) + (first + w) * 4).v[0] =
        uvec4(codes[w], codes[w + 1], codes[w + 2], codes[w + 3]);
  }
#else
  [[unroll]] for (uint w = 0; w < WORDS; ++w) {
    store(A.codes, first + w, codes[w]);
  }
#endif
}
#endif

#if CODE != CODE_INTEGER
void quantize_group(uint group, uint lane) {
  float top = 0.0;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    float v = abs(x[i]);
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
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
#if SCALE == SCALE_E4M3
    precise float scaled = x[i] * factor;
#else
    float scaled = divide_by_e8m0(x[i], scale_code);
#endif
    uint code = code_of(scaled);
#if ROUNDTRIP
    store(A.y, uint64_t(group) * GROUP + i, back * code_value(code));
#else
    set_code(i, code);
#endif
  }
}
#else
const float bins = float((1 << BITS) - 1);

// The integer nearest to v / s rounded to float32, even for ties, within the
// codes; 0 for NaN. s > 0; `inverse`: 1 / s within some units in the last place.
uint code_of_quotient(float v, float s, float inverse) {
  precise float t = v * inverse;
  t = t > 0.0 ? min(t, bins - 1.0) : 0.0;
  // The code is k or k + 1, on whichever side of k + 0.5 the quotient is.
  precise float shifted = (t - 0.5) + 12582912.0; // 1.5 * 2^23 rounds
  uint k = floatBitsToUint(shifted) & uint(bins);
  precise float middle = (shifted - 12582912.0) + 0.5;
  // v - middle s: products with halves of s are exact, and so is the difference
  // where it is small.
  float high = upper12(s);
  precise float low = s - high;
  precise float over = (v - middle * high) - middle * low;
  // Quotients that round to the middle: half a unit in its last place.
  uint half_unit = (floatBitsToUint(middle) & 0x7f800000u) - (24u << 23);
  float tie = uintBitsToFloat(half_unit) * s;
  bool up = over > tie || (over >= -tie && k % 2 == 1);
  return k + uint(up);
}

void quantize_group(uint group, uint lane) {
  const float eps = 1e-7;
  float low = INF_F;
  float high = -INF_F;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    high = x[i] > high ? x[i] : high;
    low = x[i] < low ? x[i] : low;
  }
  [[unroll]] for (uint d = 1; d < LANES; d *= 2) {
    float other = subgroupShuffleXor(high, d);
    high = other > high ? other : high;
    other = subgroupShuffleXor(low, d);
    low = other < low ? other : low;
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
  if (lane == 0 && group < A.groups) {
    store(A.scales, group, scale);
    store(A.biases, group, bias);
  }
  // Powers of two keep the sums in code_of_quotient() finite.
  float unit = abs(scale) > 1.2676506002282294e30 ? 9.094947017729282e-13 : 1.0;
  unit = scale < 0.0 ? -unit : unit;
  precise float s = scale * unit;
  float inverse = 1.0 / s;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    precise float v = (x[i] - bias) * unit;
    set_code(i, code_of_quotient(v, s, inverse));
  }
}
#endif

void main() {
  uint group = thread_index() / LANES;
  uint lane = thread_index() % LANES;
  // All lanes take part in shuffles.
  uint64_t part = uint64_t(min(group, A.groups - 1u)) * LANES + lane;
  load_items(part * ITEMS);
#if !ROUNDTRIP
  [[unroll]] for (uint w = 0; w < WORDS; ++w) {
    codes[w] = 0;
  }
#endif
  if (LANES > 1 || group < A.groups) {
    quantize_group(group, lane);
  }
#if !ROUNDTRIP
  if (group < A.groups) {
    store_codes(part * WORDS);
  }
#endif
}
