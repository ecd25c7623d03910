// Rows of 16-bit items times a matrix b, in tiles of matrix_tile.glsl. Before it
// includes this file, the kernel defines row_address(m), of a row of a,
//   set_b(m0, end, n0, inside)  the addresses of the invocation's pieces of b
//   fetch_b(span, k0, depth, inside)   their loads; `span`: tile of the SPAN per
//                               group
//   stash_b(span)               their way to shared memory
//   clear_b(k0, depth)          zeroes what was loaded beyond depth; if
//                               ENDS_INSIDE, depth may end inside a tile
// and what store_rows.glsl needs. It may define
//   IS_WHOLE(m0, end, n0, k_begin, depth)  whether all tiles are inside. They
//                               have a loop of their own (`inside`): a branch
//                               around the loads costs 10 % of the time
//   HAS_ITEMS(k_begin, depth)   unless there always are some
// SCALED_SUMS: after each of the GROUPS of a tile, scale_sums() adds `sums` to
// `acc`; begin_sums() precedes all.
#include "gemm/store_rows.glsl"

#ifndef FETCH_A
#define ALONG_A true
Steps steps_a;
#define FETCH_A FETCH_PIECES(next_a, from_a, steps_a, WIDTH_A, true)
#endif
#ifndef HAS_ITEMS
#define HAS_ITEMS(k_begin, depth) true
#endif
#ifndef STASHED_A
#define STASHED_A(i, span) next_a[i]
#endif
#if !SCALED_SUMS
#define SPAN 1
#define FETCHES_FIRST true
#define MULTIPLY_STEP(span) MULTIPLY_TILES(acc, wm, wn)
#else
#define FETCHES_FIRST (SG >= 32) // narrow subgroups lack the registers for it
#define MULTIPLY_STEP(span)                                                   \
  [[unroll]] for (uint g = 0; g < GROUPS; ++g) {                              \
    MULTIPLY_RANGE(sums, wm, wn, g * (BK / GROUPS), (g + 1) * (BK / GROUPS))  \
    if (span == SPAN - 1) {                                                   \
      scale_sums(g, wm, wn);                                                  \
    }                                                                         \
  }
#endif

// Rows and columns beyond the last repeat it and are not stored.
void set_addresses(uint m0, uint end, uint n0, bool inside) {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    if (i == 0 || !inside) {
      uint m = m0 + LINE_OF(i, WIDTH_A, ALONG_A);
      from_a[i] = row_address(inside ? m : min(m, end - (ALONG_A ? 1u : 8u)));
    }
  }
  set_b(m0, end, n0, inside);
}

// Prefetches the tiles at k0.
void fetch(uint span, uint k0, uint depth, bool inside) {
  fetch_b(span, k0, depth, inside);
  FETCH_A
}

void clear_beyond(uint k0, uint depth) {
  CLEAR_PIECES(next_a, WIDTH_A, ALONG_A)
  clear_b(k0, depth);
}

#ifndef STASH_TILES
void stash(uint span) {
  WHOLE_TILE(tile_a, next_a, WIDTH_A)
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    tile_a[AT_PIECE(INVOCATION + i * WG, WIDTH_A)] = STASHED_A(i, span);
  }
  stash_b(span);
}
#define STASH_TILES(span, k0) stash(span);
#define BEGIN_SUMS
#define LOWER_SUMS(acc, wm, wn)
#define FINISH_SUMS(m0, n0)
#endif

#define SUM_TILES(inside)                                                     \
  set_addresses(m0, end, n0, inside);                                         \
  if (inside || HAS_ITEMS(k_begin, depth)) {                                  \
    fetch(0, k_begin, depth, inside);                                         \
  }                                                                           \
  rows_inside = find_rows_inside(m0 + wm * FM * MM, end);                     \
  for (uint k0 = k_begin; k0 < depth; k0 += BK * SPAN) {                      \
    [[unroll]] for (uint s = 0; s < SPAN; ++s) {                              \
      barrier();                                                              \
      if (ENDS_INSIDE && !inside && k0 + BK > depth) {                        \
        clear_beyond(k0, depth);                                              \
      }                                                                       \
      STASH_TILES(s, k0)                                                      \
      barrier();                                                              \
      if (FETCHES_FIRST) {                                                    \
        fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth, inside);              \
      }                                                                       \
      LOWER_SUMS(acc, wm, wn)                                                 \
      MULTIPLY_STEP(s)                                                        \
      if (!FETCHES_FIRST) {                                                   \
        fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth, inside);              \
      }                                                                       \
    }                                                                         \
  }

void multiply(
    uint m0, uint n0, uint end, bool live, uint k_begin, uint depth) {
  uint wm = SUBGROUP % WM;
  uint wn = SUBGROUP / WM;
#if SCALED_SUMS
  begin_sums(depth);
#else
  MATRIX_C acc[FM * FN];
  BEGIN_FRAGMENTS(acc)
  BEGIN_SUMS
#endif
  uint rows_inside;
#ifdef IS_WHOLE
  if (IS_WHOLE(m0, end, n0, k_begin, depth)) {
    SUM_TILES(true)
  } else
#endif
  {
    SUM_TILES(false)
  }
  FINISH_SUMS(m0, n0)
  STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)
}
