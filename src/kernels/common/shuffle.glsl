// Subgroup shuffles of each type that kernels hold.
#pragma once

#define SHUFFLE_XOR_(VALUE)                                                   \
  VALUE shuffle_xor(VALUE x, uint mask) { return subgroupShuffleXor(x, mask); }
SHUFFLE_XOR_(float)
SHUFFLE_XOR_(vec2)
SHUFFLE_XOR_(uint)
SHUFFLE_XOR_(int)
// 64-bit shuffles are an optional feature, so the halves are shuffled.
uint64_t shuffle_xor(uint64_t x, uint mask) {
  return packUint2x32(subgroupShuffleXor(unpackUint2x32(x), mask));
}
int64_t shuffle_xor(int64_t x, uint mask) {
  return int64_t(shuffle_xor(uint64_t(x), mask));
}

#if FLOAT64
double shuffle_xor(double x, uint mask) {
  return packDouble2x32(subgroupShuffleXor(unpackDouble2x32(x), mask));
}
dvec2 shuffle_xor(dvec2 x, uint mask) {
  return dvec2(shuffle_xor(x.x, mask), shuffle_xor(x.y, mask));
}
double shuffle_up(double x, uint lane, uint reach) {
  return packDouble2x32(subgroupShuffle(
      unpackDouble2x32(x), lane < reach ? lane : lane - reach));
}
#endif

// x of the invocation `reach` places before this one, which is lane `lane` of
// its subgroup; the first `reach` lanes get their own x.
#define SHUFFLE_UP_(VALUE)                                                    \
  VALUE shuffle_up(VALUE x, uint lane, uint reach) {                          \
    return subgroupShuffle(x, lane < reach ? lane : lane - reach);            \
  }
#define SHUFFLE_UP_64_(VALUE)                                                 \
  VALUE shuffle_up(VALUE x, uint lane, uint reach) {                          \
    return VALUE(packUint2x32(subgroupShuffle(                                \
        unpackUint2x32(uint64_t(x)), lane < reach ? lane : lane - reach)));   \
  }
SHUFFLE_UP_(float)
SHUFFLE_UP_(vec2)
SHUFFLE_UP_(uint)
SHUFFLE_UP_(int)
SHUFFLE_UP_64_(uint64_t)
SHUFFLE_UP_64_(int64_t)
