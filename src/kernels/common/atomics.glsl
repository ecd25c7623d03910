// atomic_combine(address, value): *address = REDUCE(*address, value),
// atomically, for a type parameter T and a function REDUCE of combine.glsl; SUM
// is 1 for combine_Sum. Needs only 32-bit integer atomics. Compare-and-swap
// loops compare bits, so that NaN ends them. Their bound holds only if an
// invocation changes a word once.
#pragma once

#include "common/bits.glsl"
#include "common/combine.glsl"
#include "common/loops.glsl"

#if T_SIZE == 8
// complex64 is summed by parts, 64-bit integers by halves with a carry.
#if T_KIND == KIND_COMPLEX
void atomic_add_float(uint64_t address, float value) {
  Ptr_u32 p = Ptr_u32(address);
  uint seen = p.v[0];
  BOUNDED_WHILE(true, competitors()) {
    uint next = floatBitsToUint(uintBitsToFloat(seen) + value);
    uint before = atomicCompSwap(p.v[0], seen, next);
    if (before == seen) {
      break;
    }
    seen = before;
  }
}
void atomic_combine(uint64_t address, T value) {
  atomic_add_float(address, value.x);
  atomic_add_float(address + 4, value.y);
}
#else
void atomic_combine(uint64_t address, T value) {
  uvec2 b = unpackUint2x32(uint64_t(value));
  uint low = atomicAdd(Ptr_u32(address).v[0], b.x);
  uint carry = low + b.x < low ? 1u : 0u;
  atomicAdd(Ptr_u32(address + 4).v[0], b.y + carry);
}
#endif

#elif T_SIZE == 4 && SUM && T_KIND != KIND_FLOAT
void atomic_combine(uint64_t address, T value) {
  atomicAdd(Ptr_u32(address).v[0], uint(value));
}

#else
// Items below 32 bits are changed within the aligned word that holds them.
void atomic_combine(uint64_t address, T value) {
  Ptr_u32 p = Ptr_u32(address & ~uint64_t(3));
  uint shift = (uint(address) & 3u) * 8u;
  const uint mask = T_SIZE == 4 ? 0xffffffffu : (1u << (T_SIZE * 8 % 32)) - 1u;
  uint seen = p.v[0];
  BOUNDED_WHILE(true, competitors()) {
    T old = FROM_BITS(T_PTR)(uvec2((seen >> shift) & mask, 0u));
    uint item = TO_BITS(T_PTR)(REDUCE(old, value)).x;
    uint next = (seen & ~(mask << shift)) | (item << shift);
    uint before = atomicCompSwap(p.v[0], seen, next);
    if (before == seen) {
      break;
    }
    seen = before;
  }
}
#endif
