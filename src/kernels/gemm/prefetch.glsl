// Prefetch of the next pair of tiles into registers, for gemm.comp and
// conv/conv_tile.comp with PREFETCH. Include after tile.glsl.
#pragma once

#include "common/constants.glsl"

#define LOADS_A (BM * BK / THREADS)
#define LOADS_B (BK * BN / THREADS)

#if PREFETCH
#define ROLLED
Quad next_a[LOADS_A / 4];
Quad next_b[LOADS_B / 4];

// The invocation's i-th item of a tile. `quads`: in groups of four, which are
// whole rows or k's apart if BM, BN and BK divide 4 * THREADS.
uint own_item(uint i, uint quads) {
  uint t = gl_LocalInvocationIndex;
  return quads != 0 ? (t + i / 4 * THREADS) * 4 + i % 4 : t + i * THREADS;
}

// Stores the prefetched items to shared memory. Unless `whole`, items beyond
// `depth` are zero.
#define STASH(tile, next, LOADS, slot, k_of, VEC, ACROSS)                     \
  [[unroll]] for (uint i = 0; i < LOADS; i += (ACROSS ? 4 : 1)) {             \
    uint e = own_item(i, VEC);                                                \
    bool real = whole || k_of(e) < depth;                                     \
    if (ACROSS) {                                                             \
      tile[slot(e) / 4] = real ? next[i / 4] : Quad(0.0);                     \
    } else {                                                                  \
      ITEM(tile, slot(e)) = real ? ITEM(next, i) : ZERO;                      \
    }                                                                         \
  }
void stash(bool whole, uint depth) {
  REQUIRE(next_a.length() * 4 * THREADS == BM * BK && BM * BK <= BK * ROW_A * 4)
  REQUIRE(next_b.length() * 4 * THREADS == BK * BN && BK * BN <= BK * ROW_B * 4)
  STASH(tile_a, next_a, LOADS_A, slot_a, k_a, VA, (VA != 0 && A_T != 0))
  STASH(tile_b, next_b, LOADS_B, slot_b, k_b, VB, (VB != 0 && B_T == 0))
}
#else
#define ROLLED [[dont_unroll]]
#endif
