// Raw moves of words of WORD bytes. The host selects the widest word that
// divides every address of the move.
#pragma once

#include "common/types.glsl"

#if WORD == 1
#define Word uint8_t
#define WordPtr Ptr_u8
#elif WORD == 2
#define Word uint16_t
#define WordPtr Ptr_u16
#elif WORD == 4
#define Word uint
#define WordPtr Ptr_u32
#elif WORD == 8
#define Word uvec2
#define WordPtr Ptr_u32x2
#else
#define Word uvec4
#define WordPtr Ptr_u32x4
#endif

// load() of types.glsl does not cover words of 8 and 16 bytes.
#define WORD_ACCESS(INDEX)                                                    \
  Word load_word(WordPtr p, INDEX i) {                                        \
    return WordPtr(uint64_t(p) + uint64_t(int64_t(i)) * WORD).v[0];           \
  }                                                                           \
  void store_word(WordPtr p, INDEX i, Word x) {                               \
    WordPtr(uint64_t(p) + uint64_t(int64_t(i)) * WORD).v[0] = x;              \
  }
WORD_ACCESS(int)
WORD_ACCESS(uint)
WORD_ACCESS(int64_t)
WORD_ACCESS(uint64_t)
