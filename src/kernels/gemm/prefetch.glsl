// Prefetch of the next pair of tiles into registers, for gemm.comp and
// conv/conv_tile.comp with PREFETCH. Include after tile.glsl.
#pragma once

#include "common/constants.glsl"

#define LOADS_A (BM * BK / THREADS)
#define LOADS_B (BK * BN / THREADS)

#if PREFETCH
#define ROLLED
Piece next_a[LOADS_A / PIECE];
Piece next_b[LOADS_B / PIECE];

// The invocation's i-th item of a tile. `pieces`: in pieces, which are whole rows
// or k's apart if BM, BN and BK divide PIECE * THREADS.
uint own_item(uint i, uint pieces) {
  uint t = gl_LocalInvocationIndex;
  return pieces != 0 ? (t + i / PIECE * THREADS) * PIECE + i % PIECE
                     : t + i * THREADS;
}

// Stores the prefetched items to shared memory. Unless `whole`, items beyond
// `depth` are zero.
#define STASH(tile, next, LOADS, slot, k_of, VEC, ACROSS)                     \
  [[unroll]] for (uint i = 0; i < LOADS; i += (ACROSS ? PIECE : 1)) {         \
    uint e = own_item(i, VEC);                                                \
    bool real = whole || k_of(e) < depth;                                     \
    if (ACROSS) {                                                             \
      tile[slot(e) / PIECE] = real ? next[i / PIECE] : Piece(0.0);            \
    } else {                                                                  \
      ITEM(tile, slot(e)) = real ? ITEM(next, i) : ZERO;                      \
    }                                                                         \
  }
void stash(bool whole, uint depth) {
  REQUIRE(next_a.length() * PIECE * THREADS == BM * BK)
  REQUIRE(BM < ROW_A * PIECE)
  REQUIRE(next_b.length() * PIECE * THREADS == BK * BN)
  REQUIRE(BN < ROW_B * PIECE)
  STASH(tile_a, next_a, LOADS_A, slot_a, k_a, VA, (VA != 0 && A_T != 0))
  STASH(tile_b, next_b, LOADS_B, slot_b, k_b, VB, (VB != 0 && B_T == 0))
}
#else
#define ROLLED [[dont_unroll]]
#endif
