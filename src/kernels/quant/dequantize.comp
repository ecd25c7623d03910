// Dequantizes DEQUANTIZE_UNITS units of eight items per invocation, with all
// loads in flight together. Adjacent lanes take adjacent units.
#include "common/vector.glsl"
#include "quant/dequant.glsl"
#include "quant/quantize.h"
#define ARGS_BLOCK DequantizeArgs
#include "common/args.glsl"

layout(local_size_x = DEQUANTIZE_WG) in;

float weight(uint code, float scale, float bias) {
  precise float v = scale * code_value(code);
#if SIDE == SIDE_BIASES
  v = v + bias;
#endif
  return v;
}

#ifdef T_IS_bf16
#define ITEM_BITS f32_to_bf16
// Rounds two values to bfloat16 and packs them. They must not be NaN, whose
// mantissa could carry into the exponent.
uint pack_numbers(float a, float b) {
  uint x = floatBitsToUint(a);
  uint y = floatBitsToUint(b);
  x += 0x7fffu + ((x >> 16) & 1u);
  y += 0x7fffu + ((y >> 16) & 1u);
  return (x >> 16) | (y & 0xffff0000u);
}
#else
#define ITEM_BITS f32_to_f16
#endif

void store_unit(uint unit, uvec2 codes, float scale, float bias) {
#ifdef T_IS_bf16
  // Only e4m3 has NaN codes.
  if (CODE != CODE_E4M3 && is_finite(scale) && is_finite(bias)) {
    uvec4 y;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      y[k] = pack_numbers(
          weight(code8(codes, 2 * k), scale, bias),
          weight(code8(codes, 2 * k + 1), scale, bias));
    }
    Ptr_u32x4(uint64_t(A.y) + uint64_t(unit) * 16).v[0] = y;
    return;
  }
#endif
#if T_SIZE == 2
  uvec4 y;
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    y[k] = join16_(
        ITEM_BITS(weight(code8(codes, 2 * k), scale, bias)),
        ITEM_BITS(weight(code8(codes, 2 * k + 1), scale, bias)));
  }
  Ptr_u32x4(uint64_t(A.y) + uint64_t(unit) * 16).v[0] = y;
#else
  [[unroll]] for (uint half_unit = 0; half_unit < 2; ++half_unit) {
    float four[4];
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      four[k] = weight(code8(codes, 4 * half_unit + k), scale, bias);
    }
    STORE_FOUR(T_PTR, A.y, 2 * uint64_t(unit) + half_unit, four);
  }
#endif
}

void main() {
  uint first = group_index() * (DEQUANTIZE_WG * DEQUANTIZE_UNITS);
  uint left = first < A.units ? A.units - first : 0u;
  uvec2 codes[DEQUANTIZE_UNITS];
  float scale[DEQUANTIZE_UNITS], bias[DEQUANTIZE_UNITS];
#if SIDE == SIDE_GLOBAL
  float unit_scale = load(A.global_scale, 0) / GLOBAL_UNIT;
#endif
  [[unroll]] for (uint i = 0; i < DEQUANTIZE_UNITS; ++i) {
    uint at = gl_LocalInvocationIndex + i * DEQUANTIZE_WG;
    codes[i] = uvec2(0);
    scale[i] = bias[i] = 0.0;
    if (at < left) {
      uint unit = first + at;
      uint group = unit / (GROUP / 8);
      // Addressed in 64 bits: the words of a large array exceed 2^32 bytes.
      Ptr_u32 w = MOVED(WORD, A.w, int64_t(unit / 4u) * BITS);
      codes[i] = load_codes8(w, unit % 4u);
      scale[i] = load_scale(A.scales, group);
#if SIDE == SIDE_GLOBAL
      precise float product = scale[i] * unit_scale;
      scale[i] = product;
#elif SIDE == SIDE_BIASES
      bias[i] = load(A.biases, group);
#endif
    }
  }
  [[unroll]] for (uint i = 0; i < DEQUANTIZE_UNITS; ++i) {
    uint at = gl_LocalInvocationIndex + i * DEQUANTIZE_WG;
    if (at < left) {
      store_unit(first + at, codes[i], scale[i], bias[i]);
    }
  }
}
