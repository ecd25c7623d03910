// The next pair of tiles, fetched into registers while the present one is used:
// what gemm.comp and conv/conv_tile.comp share of PREFETCH. After tile.glsl.
#ifndef GEMM_PREFETCH_GLSL
#define GEMM_PREFETCH_GLSL

#define LOADS_A (BM * BK / THREADS)
#define LOADS_B (BK * BN / THREADS)

#if PREFETCH
#define ROLLED
Acc next_a[LOADS_A];
Acc next_b[LOADS_B];

// The invocation's i-th item of a tile; `quads`: in groups of four. All of its
// items, or their groups, are at one k of a, as of b.
uint own_item(uint i, uint quads) {
  uint t = gl_LocalInvocationIndex;
  return quads != 0 ? (t + i / 4 * THREADS) * 4 + i % 4 : t + i * THREADS;
}

void stash() {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    tile_a[slot_a(own_item(i, VA))] = next_a[i];
  }
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    tile_b[slot_b(own_item(i, VB))] = next_b[i];
  }
}
#else
#define ROLLED [[dont_unroll]]
#endif

#endif
