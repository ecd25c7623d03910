// Codes, scales and biases of quantized weights, for every mode.
//
// The host defines BITS, GROUP and FP (0: affine, 1: mxfp4, mxfp8, nvfp4).
// Whatever BITS is, the codes of a row are one little-endian bit stream in
// 32-bit words: 32 elements are BITS words and 8 elements are BITS bytes.
// A weight is scale * code_value(code) + bias; the bias is zero for FP.
#ifndef DEQUANT_GLSL
#define DEQUANT_GLSL

#include "common/types.glsl"
#include "quant/fp8.glsl"

// Pointer plus n items, n of 64 bits. glslang's own `reference + n` would make
// a conversion of 64 bits to 64, which is no valid SPIR-V.
#define ADVANCE(P, p, bytes) P(uint64_t(p) + uint64_t(bytes))
#define ITEMS_AT(p, n) ADVANCE(T_PTR, p, int64_t(n) * T_SIZE)
#define WORDS_AT(p, n) ADVANCE(Ptr_u32, p, int64_t(n) * 4)
#define SCALES_AT(p, n) ADVANCE(SCALE_PTR, p, int64_t(n) * SCALE_SIZE)

#define CODE_MASK ((1u << BITS) - 1u)

// The words of a chunk hold code i at a bit position known when unrolled.
#define CODE_WORD(i) (((i) * BITS) >> 5)
#define CODE_SHIFT(i) (((i) * BITS) & 31)
#define CODE_IN(words, i)                                                     \
  ((CODE_SHIFT(i) + BITS > 32                                                 \
        ? ((words[CODE_WORD(i)] >> CODE_SHIFT(i)) |                           \
           (words[CODE_WORD(i) + (CODE_SHIFT(i) + BITS > 32 ? 1 : 0)]         \
            << ((32 - CODE_SHIFT(i)) & 31)))                                  \
        : (words[CODE_WORD(i)] >> CODE_SHIFT(i))) &                           \
   CODE_MASK)

// A code's value, before scale and bias.
float code_value(uint code) {
#if FP && BITS == 4
  return e2m1_to_f32(code);
#elif FP
  return e4m3_to_f32(code);
#else
  // An integer below 2^23 as a float, without a conversion instruction.
  return uintBitsToFloat(code | 0x4b000000u) - 8388608.0;
#endif
}

#if FP
#define SCALE_PTR Ptr_u8
#define SCALE_SIZE 1
#if GROUP == 16
#define load_scale(p, i) e4m3_to_f32(uint(load(p, i)))
#else
#define load_scale(p, i) e8m0_to_f32(uint(load(p, i)))
#endif
#else
#define SCALE_PTR T_PTR
#define SCALE_SIZE T_SIZE
#define load_scale(p, i) load(p, i)
#endif

// The 8 codes of elements 8*i .. 8*i+7 of a row, in 8*BITS bits. Reads no
// word that holds none of them: rows are whole multiples of 16 elements.
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

// Code k (0..7, known when unrolled) of load_codes8().
uint code8(uvec2 c, uint k) {
  uint bit = k * BITS;
  uint v = bit >= 32u ? c.y >> (bit & 31u) : c.x >> bit;
  if (bit < 32u && bit + BITS > 32u) {
    v |= c.y << (32u - bit);
  }
  return v & CODE_MASK;
}

#endif
