// Codes as 16-bit floating-point operands of a product. They are exact, and a
// group's product is scaled afterwards. An integer becomes 2^BITS + code, which
// takes one `or`. CODE_AT: lowest bit of a code in its operand; CODE_OFFSET:
// the excess of the operand over the code.
#pragma once

#if defined(T_IS_bf16) && !HALVES
#define MANTISSA_BITS 7
#define EXPONENT_BIAS 127
#else
#define MANTISSA_BITS 10
#define EXPONENT_BIAS 15
#endif
#if CODE == CODE_INTEGER && BITS <= MANTISSA_BITS
#define CODE_AT (MANTISSA_BITS - BITS)
#define CODE_BASE (uint(EXPONENT_BIAS + BITS) << MANTISSA_BITS)
#define CODE_OFFSET float(1 << BITS)
#else
#define CODE_OFFSET 0.0
#endif
// Four-bit codes i and i + 4 of a word form a pair, as do those items of x; a
// pair takes two instructions.
#define INTERLEAVED (CODE == CODE_INTEGER && BITS == 4)

uint code_base; // CODE_BASE in both halves

void take_code_base(uint k) {
#ifdef CODE_AT
  code_base = IN_REGISTER(CODE_BASE * 0x00010001u, k);
#endif
}

uint code_pair(uint low, uint high) {
#ifdef CODE_AT
  return ((low | (high << 16)) << CODE_AT) | code_base;
#elif defined(T_IS_bf16) && !HALVES
  // The values are exact in bfloat16, so truncation suffices.
  return (floatBitsToUint(code_value(low)) >> 16) |
      (floatBitsToUint(code_value(high)) & 0xffff0000u);
#else
  return packHalf2x16(vec2(code_value(low), code_value(high)));
#endif
}

#if INTERLEAVED
// The eight codes of a word, in pairs.
uvec4 word_pairs(uint word) {
  uvec4 q;
  const uint mask = 0x000f000fu << CODE_AT;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    uint at = 4 * c < CODE_AT ? word << (CODE_AT - 4 * c)
                              : word >> (4 * c - CODE_AT);
    q[c] = (at & mask) | code_base;
  }
  return q;
}
#endif

// Loads a run of 32 codes into an array of words.
#if BITS % 4 == 0
#define LOAD_RUN(words, at)                                                   \
  [[unroll]] for (uint j = 0; j < BITS; j += 4) {                             \
    uvec4 q = Ptr_u32x4(at).v[j / 4];                                         \
    words[j] = q.x;                                                           \
    words[j + 1] = q.y;                                                       \
    words[j + 2] = q.z;                                                       \
    words[j + 3] = q.w;                                                       \
  }
#elif BITS % 2 == 0
#define LOAD_RUN(words, at)                                                   \
  [[unroll]] for (uint j = 0; j < BITS; j += 2) {                             \
    uvec2 q = Ptr_u32x2(at).v[j / 2];                                         \
    words[j] = q.x;                                                           \
    words[j + 1] = q.y;                                                       \
  }
#else
#define LOAD_RUN(words, at)                                                   \
  [[unroll]] for (uint j = 0; j < BITS; ++j) {                                \
    words[j] = load(Ptr_u32(at), j);                                          \
  }
#endif

// Sets q to eight codes of a run, starting at `first`. A macro, as LOAD_RUN is,
// so that the array stays in registers.
#if INTERLEAVED
#define RUN_ITEMS(q, words, first) q = word_pairs(words[(first) / 8]);
#else
#define RUN_ITEMS(q, words, first)                                            \
  [[unroll]] for (uint c = 0; c < 4; ++c) {                                   \
    uint at = (first) + 2 * c;                                                \
    q[c] = code_pair(CODE_IN(words, at), CODE_IN(words, at + 1));             \
  }
#endif

// Eight items of x in the order of word_pairs().
uvec4 item_pairs(uvec4 q) {
#if INTERLEAVED
  // As halves of words, each pair is one byte permutation on NVIDIA.
  u16vec2 x = unpack16(q.x), y = unpack16(q.y), z = unpack16(q.z),
          w = unpack16(q.w);
  q = uvec4(
      pack32(u16vec2(x.x, z.x)),
      pack32(u16vec2(x.y, z.y)),
      pack32(u16vec2(y.x, w.x)),
      pack32(u16vec2(y.y, w.y)));
#endif
  return q;
}
