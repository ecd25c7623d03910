// Atomics in memory on items of any type of up to 32 bits.
// msl_atomic_add(address, item, x) and similar change the item at an address
// and return its previous value; `item` has the same storage type
// (common/types.glsl) and only selects the overload. Needs only 32-bit integer
// atomics: other types use compare-and-swap loops on the word that holds the
// item, which compare bits, so that NaN ends them.
#pragma once

#include "common/loops.glsl"
#include "common/types.glsl"

// An attempt fails if another invocation changed the word meanwhile, and each
// may do so any number of times.
#define MOST_ATTEMPTS 0xffffff00u

#define SWAP_LOOP_(NAME, ITEM, VALUE, BITS, CODE, FROM, TO, OP)               \
  VALUE msl_atomic_##NAME(uint64_t address, ITEM item, VALUE x) {             \
    Ptr_u32 word = Ptr_u32(address & ~uint64_t(3));                           \
    uint shift = (uint(address) & 3u) * 8u;                                   \
    const uint mask = 0xffffffffu >> (32 - BITS);                             \
    uint seen = word.v[0];                                                    \
    VALUE old = FROM(CODE((seen >> shift) & mask));                           \
    BOUNDED_WHILE(true, MOST_ATTEMPTS) {                                      \
      uint next = (uint(TO(OP(old, x))) & mask) << shift;                     \
      next |= seen & ~(mask << shift);                                        \
      uint before = atomicCompSwap(word.v[0], seen, next);                    \
      if (before == seen) {                                                   \
        break;                                                                \
      }                                                                       \
      seen = before;                                                          \
      old = FROM(CODE((seen >> shift) & mask));                               \
    }                                                                         \
    return old;                                                               \
  }

#define OP_ADD_(a, b) ((a) + (b))
#define OP_SUB_(a, b) ((a) - (b))
#define OP_MIN_(a, b) ((b) < (a) ? (b) : (a))
#define OP_MAX_(a, b) ((b) > (a) ? (b) : (a))
#define OP_AND_(a, b) ((a) & (b))
#define OP_OR_(a, b) ((a) | (b))
#define OP_XOR_(a, b) ((a) ^ (b))
#define OP_EXCHANGE_(a, b) (b)

#define EACH_SWAP_NUMBER_(ITEM, VALUE, BITS, CODE, FROM, TO)                  \
  SWAP_LOOP_(add, ITEM, VALUE, BITS, CODE, FROM, TO, OP_ADD_)                 \
  SWAP_LOOP_(sub, ITEM, VALUE, BITS, CODE, FROM, TO, OP_SUB_)                 \
  SWAP_LOOP_(min, ITEM, VALUE, BITS, CODE, FROM, TO, OP_MIN_)                 \
  SWAP_LOOP_(max, ITEM, VALUE, BITS, CODE, FROM, TO, OP_MAX_)                 \
  SWAP_LOOP_(exchange, ITEM, VALUE, BITS, CODE, FROM, TO, OP_EXCHANGE_)
#define EACH_SWAP_INTEGER_(T, BITS)                                           \
  EACH_SWAP_NUMBER_(T, T, BITS, uint, T, uint)                                \
  SWAP_LOOP_(and, T, T, BITS, uint, T, uint, OP_AND_)                         \
  SWAP_LOOP_(or, T, T, BITS, uint, T, uint, OP_OR_)                           \
  SWAP_LOOP_(xor, T, T, BITS, uint, T, uint, OP_XOR_)
EACH_SWAP_NUMBER_(float, float, 32, uint, uintBitsToFloat, floatBitsToUint)
EACH_SWAP_INTEGER_(uint8_t, 8)
EACH_SWAP_INTEGER_(int8_t, 8)
EACH_SWAP_INTEGER_(uint16_t, 16)
EACH_SWAP_INTEGER_(int16_t, 16)

// Coded dtypes, by the type of their values.
#define SWAP_float_(ITEM, BITS, FROM, TO)                                     \
  EACH_SWAP_NUMBER_(ITEM, float, BITS, uint##BITS##_t, FROM, TO)
#define BOOL_OF_(bits) ((bits) != 0u)
#define OP_BOTH_(a, b) ((a) && (b))
#define OP_EITHER_(a, b) ((a) || (b))
#define OP_ONE_(a, b) ((a) != (b))
#define SWAP_bool_(ITEM, BITS, FROM, TO)                                      \
  SWAP_LOOP_(and, ITEM, bool, BITS, uint, BOOL_OF_, uint, OP_BOTH_)           \
  SWAP_LOOP_(or, ITEM, bool, BITS, uint, BOOL_OF_, uint, OP_EITHER_)          \
  SWAP_LOOP_(xor, ITEM, bool, BITS, uint, BOOL_OF_, uint, OP_ONE_)            \
  SWAP_LOOP_(exchange, ITEM, bool, BITS, uint, BOOL_OF_, uint, OP_EXCHANGE_)
#define SWAP_CODED_(D, VALUE, BITS, FROM, TO)                                 \
  SWAP_##VALUE##_(Bits_##D, BITS, FROM, TO)
EACH_CODED_DTYPE(SWAP_CODED_)

#define WORD_ATOMIC_(NAME, PTR, VALUE, FUNCTION)                              \
  VALUE msl_atomic_##NAME(uint64_t address, VALUE item, VALUE x) {            \
    return FUNCTION(PTR(address).v[0], x);                                    \
  }
#define EACH_WORD_ATOMIC_(PTR, VALUE)                                         \
  WORD_ATOMIC_(add, PTR, VALUE, atomicAdd)                                    \
  WORD_ATOMIC_(min, PTR, VALUE, atomicMin)                                    \
  WORD_ATOMIC_(max, PTR, VALUE, atomicMax)                                    \
  WORD_ATOMIC_(and, PTR, VALUE, atomicAnd)                                    \
  WORD_ATOMIC_(or, PTR, VALUE, atomicOr)                                      \
  WORD_ATOMIC_(xor, PTR, VALUE, atomicXor)                                    \
  WORD_ATOMIC_(exchange, PTR, VALUE, atomicExchange)                          \
  VALUE msl_atomic_sub(uint64_t address, VALUE item, VALUE x) {               \
    return atomicAdd(PTR(address).v[0], VALUE(0) - x);                        \
  }
EACH_WORD_ATOMIC_(Ptr_u32, uint)
EACH_WORD_ATOMIC_(Ptr_i32, int)
