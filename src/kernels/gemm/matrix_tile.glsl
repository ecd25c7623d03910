// Tiles of a (BM x BK) and b (BK x BN) for cooperative matrices; WM x WN
// subgroups of SG invocations compute BM x BN of y. The next tiles are
// prefetched into next_a and next_b. Shared memory keeps the operands' own
// order, eight items per uvec4; the layout of the matrix loads transposes.
// A_T: a has unit stride along rows, else along k. B_T: b has unit stride along
// k, else along columns.
#pragma once

#ifndef BK
#define BK 32
#endif
#define WG (WM * WN * SG)
#include "common/matrix_units.glsl"
#include "common/constants.glsl"

#define FM (BM / (MM * WM)) // fragments per subgroup
#define FN (BN / (MN * WN))

// Tile rows in uvec4, padded by one against bank conflicts.
#if A_T
#define ROWS_A BK
#define WIDTH_A (BM / 8)
#define LAYOUT_A COLUMN_MAJOR
#define AT_A(r, k) ((k) * PITCH_A + (r) / 8)
#else
#define ROWS_A BM
#define WIDTH_A (BK / 8)
#define LAYOUT_A ROW_MAJOR
#define AT_A(r, k) ((r) * PITCH_A + (k) / 8)
#endif
#if B_T
#define ROWS_B BN
#define WIDTH_B (BK / 8)
#define LAYOUT_B COLUMN_MAJOR
#define AT_B(k, c) ((c) * PITCH_B + (k) / 8)
#else
#define ROWS_B BK
#define WIDTH_B (BN / 8)
#define LAYOUT_B ROW_MAJOR
#define AT_B(k, c) ((k) * PITCH_B + (c) / 8)
#endif
#define PITCH_A (WIDTH_A + 1)
#define PITCH_B (WIDTH_B + 1)
#define LOADS_A (BM * BK / 8 / WG)

layout(local_size_x = WG) in;

shared uvec4 tile_a[ROWS_A * PITCH_A];
shared uvec4 tile_b[ROWS_B * PITCH_B];
#ifndef OWN_CORNERS
shared float stage[WM * WN * ITEMS_C]; // one fragment per subgroup
#endif

uvec4 next_a[LOADS_A];

// Index by which an invocation takes pieces of a tile. With HALVES or CODES
// adjacent indices are in the same subgroup, because lanes share rows.
#if HALVES || CODES
#define INVOCATION (SUBGROUP * SG + LANE)
#else
#define INVOCATION gl_LocalInvocationIndex
#endif

// Slot of piece e of a tile; invocations take pieces in turn. WHOLE_TILE: next_a
// or next_b of all invocations are the tile, and an invocation's pieces have the
// same place in their rows.
#define AT_PIECE(e, WIDTH) ((e) / (WIDTH) * ((WIDTH) + 1) + (e) % (WIDTH))
#define WHOLE_TILE(tile, next, WIDTH)                                         \
  REQUIRE(WG % (WIDTH) == 0)                                                  \
  REQUIRE(next.length() * WG / (WIDTH) * ((WIDTH) + 1) == tile.length())
#define STASH(tile, next, LOADS, WIDTH)                                       \
  WHOLE_TILE(tile, next, WIDTH)                                               \
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {                               \
    uint e = INVOCATION + i * WG;                                             \
    tile[AT_PIECE(e, WIDTH)] = next[i];                                       \
  }

#define BEGIN_FRAGMENTS(acc)                                                  \
  UNROLL for (uint i = 0; i < FM * FN; ++i) {                                 \
    BEGIN_SUM(acc[i])                                                         \
  }
#define CLEAR_FRAGMENTS(acc)                                                  \
  UNROLL for (uint i = 0; i < FM * FN; ++i) {                                 \
    acc[i] = MATRIX_ZERO;                                                     \
  }

// acc += product of the tiles, for the subgroup's fragments selected by `wm`
// and `wn`. A macro, so that acc stays in registers.
#define MULTIPLY_TILES(acc, wm, wn) MULTIPLY_RANGE(acc, wm, wn, 0, BK)

// MULTIPLY_TILES() for a range of k.
#define MULTIPLY_RANGE(acc, wm, wn, k_from, k_to)                             \
  UNROLL for (uint kk = k_from; kk < k_to; kk += MK) {                        \
    MATRIX_A x[FM];                                                           \
    MATRIX_B w;                                                               \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      uint r = (wm * FM + i) * MM;                                            \
      LOAD_A(x[i], tile_a, AT_A(r, kk), PITCH_A, LAYOUT_A);                   \
    }                                                                         \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      uint c = (wn * FN + j) * MN;                                            \
      LOAD_B(w, tile_b, AT_B(kk, c), PITCH_B, LAYOUT_B);                      \
      UNROLL for (uint i = 0; i < FM; ++i) {                                  \
        MULTIPLY_ADD(acc[i * FN + j], x[i], w);                               \
      }                                                                       \
    }                                                                         \
  }
