// Rows of 16-bit items times a matrix b, in tiles of matrix_tile.glsl. Before it
// includes this file, the kernel defines row_address(m), of a row of a, and
//   set_b(m0, end, n0)          the addresses of the invocation's pieces of b
//   fetch_b(span, k0, depth)    their loads; `span`: tile of the SPAN per group
//   stash_b(span)               their way to shared memory
//   clear_b(k0, depth)          zeroes what was loaded beyond depth; if
//                               ENDS_INSIDE, depth may end inside a tile
// SCALED_SUMS: after each of the GROUPS of a tile, scale_sums() adds `sums` to
// `acc`; begin_sums() precedes all.
#include "gemm/store_rows.glsl"

#ifndef STASHED_A
#define STASHED_A(i, span) next_a[i]
#endif
#if !SCALED_SUMS
#define SPAN 1
#endif

uint64_t from_a[LOADS_A]; // rows of the invocation's pieces

// Offset along k in a tile of the invocation's pieces.
uint own_item() {
  return INVOCATION % WIDTH_A * 8;
}

// Rows beyond the last repeat it and are not stored.
void set_addresses(uint m0, uint end, uint n0) {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    from_a[i] =
        row_address(min(m0 + (INVOCATION + i * WG) / WIDTH_A, end - 1u));
  }
  set_b(m0, end, n0);
}

// Prefetches the tiles at k0. Indices beyond depth are clamped, because a branch
// around the loads costs 10 % of the time; clear_beyond() zeroes the result.
void fetch(uint span, uint k0, uint depth) {
  fetch_b(span, k0, depth);
  uint k = min(k0 + own_item(), depth - 8u);
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = Ptr_u32x4(from_a[i]).v[k / 8u];
  }
}

void clear_beyond(uint k0, uint depth) {
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    next_a[i] = k0 + own_item() < depth ? next_a[i] : uvec4(0);
  }
  clear_b(k0, depth);
}

void stash(uint span) {
  WHOLE_TILE(tile_a, next_a, WIDTH_A)
  [[unroll]] for (uint i = 0; i < LOADS_A; ++i) {
    tile_a[AT_PIECE(INVOCATION + i * WG, WIDTH_A)] = STASHED_A(i, span);
  }
  stash_b(span);
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
#endif
  set_addresses(m0, end, n0);
  fetch(0, k_begin, depth);
  uint rows_inside = find_rows_inside(m0 + wm * FM * MM, end);
  for (uint k0 = k_begin; k0 < depth; k0 += BK * SPAN) {
    [[unroll]] for (uint s = 0; s < SPAN; ++s) {
      barrier();
      if (ENDS_INSIDE && k0 + BK > depth) {
        clear_beyond(k0, depth);
      }
      stash(s);
      barrier();
#if !SCALED_SUMS || SG >= 32 // narrow subgroups lack the registers for it here
      fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth);
#endif
#if SCALED_SUMS
      [[unroll]] for (uint g = 0; g < GROUPS; ++g) {
        MULTIPLY_RANGE(sums, wm, wn, g * (BK / GROUPS), (g + 1) * (BK / GROUPS))
        if (s == SPAN - 1) {
          scale_sums(g, wm, wn);
        }
      }
#else
      MULTIPLY_TILES(acc, wm, wn)
#endif
#if SCALED_SUMS && SG < 32
      fetch((s + 1) % SPAN, k0 + (s + 1) * BK, depth);
#endif
    }
  }
  STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)
}
