// Codes, scales and biases of quantized weights in every format.
//
// The host defines BITS, GROUP, CODE, SCALE and SIDE (quant/formats.h). The
// codes of a row are a little-endian bit stream in 32-bit words: 32 elements
// take BITS words, 8 elements BITS bytes. A weight is scale * code_value(code),
// plus a bias with SIDE_BIASES.
#pragma once

#include "common/types.glsl"
#include "quant/formats.h"
#include "quant/small_floats.glsl"

#define WORD_PTR Ptr_u32
#define WORD_SIZE 4

#define CODE_MASK ((1u << BITS) - 1u)

// Code i of a chunk of words; its bit position is a constant once unrolled.
#define CODE_WORD(i) (((i) * BITS) >> 5)
#define CODE_SHIFT(i) (((i) * BITS) & 31)
#define CODE_IN(words, i)                                                     \
  ((CODE_SHIFT(i) + BITS > 32                                                 \
        ? ((words[CODE_WORD(i)] >> CODE_SHIFT(i)) |                           \
           (words[CODE_WORD(i) + (CODE_SHIFT(i) + BITS > 32 ? 1 : 0)]         \
            << ((32 - CODE_SHIFT(i)) & 31)))                                  \
        : (words[CODE_WORD(i)] >> CODE_SHIFT(i))) &                           \
   CODE_MASK)

// code_value() is the value of a code before scale and bias, code_of() the
// nearest code of a value.
#if CODE == CODE_E2M1
#define CODE_MAX E2M1_MAX
#define code_value e2m1_to_f32
#define code_of f32_to_e2m1
#elif CODE == CODE_E4M3
#define CODE_MAX E4M3_MAX
#define code_value e4m3_to_f32
#define code_of f32_to_e4m3
#else
float code_value(uint code) {
  // Converts an integer below 2^23 without a conversion instruction.
  return uintBitsToFloat(code | 0x4b000000u) - 8388608.0;
}
#endif

#if SCALE == SCALE_AS_T
#define SCALE_PTR T_PTR
#define SCALE_SIZE T_SIZE
#define load_scale(p, i) load(p, i)
#else
#define SCALE_PTR Ptr_u8
#define SCALE_SIZE 1
#if SCALE == SCALE_E8M0
#define load_scale(p, i) e8m0_to_f32(uint(load(p, i)))
#else
#define load_scale(p, i) e4m3_to_f32(uint(load(p, i)))
#endif
#endif

// The global scale is stored in units of the largest code times the largest
// scale.
const float GLOBAL_UNIT = E2M1_MAX * E4M3_MAX;

// The codes of elements 8*i .. 8*i+7 of a row, in 8*BITS bits. Never reads past
// the row, because rows are multiples of 16 elements.
uvec2 load_codes8(Ptr_u32 row, uint i) {
#if BITS == 8
  return uvec2(load(row, 2u * i), load(row, 2u * i + 1u));
#elif BITS == 4
  return uvec2(load(row, i), 0u);
#elif BITS == 2
  return uvec2(load(row, i >> 1) >> (16u * (i & 1u)), 0u);
#elif BITS == 1
  return uvec2(load(row, i >> 2) >> (8u * (i & 3u)), 0u);
#else
  uint byte = BITS * i;
  uint word = byte >> 2;
  uint shift = (byte & 3u) * 8u;
  uint lo = load(row, word);
  uint hi = 0u;
  if (shift + 8u * BITS > 32u) {
    hi = load(row, word + 1u);
  }
  return shift == 0u ? uvec2(lo, hi)
                     : uvec2((lo >> shift) | (hi << (32u - shift)), hi >> shift);
#endif
}

// Code k (0..7, constant once unrolled) of load_codes8().
uint code8(uvec2 c, uint k) {
  uint bit = k * BITS;
  uint v = bit >= 32u ? c.y >> (bit & 31u) : c.x >> bit;
  if (bit < 32u && bit + BITS > 32u) {
    v |= c.y << (32u - bit);
  }
  return v & CODE_MASK;
}
