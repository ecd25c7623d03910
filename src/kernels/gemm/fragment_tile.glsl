// Product tiles of 16-bit floats with cooperative matrices of known element
// layout (common/fragments.glsl). WM x WN subgroups of SG invocations compute
// BM x BN of y. Columns of b are contiguous along k, in whole pieces of eight;
// k is a multiple of BK, and tiles lie inside the matrices.
//
// a passes through shared memory, b does not: a lane loads the eight items of k
// for its elements of two B matrices straight into registers as soon as those
// of the previous step are used. The order of k within a step is therefore
// permuted: of four lanes, lane t holds items 8 t to 8 t + 7, the first half
// for one matrix, the second for the other. a is stored in the same order: pair
// q of piece t as pair t of piece q. With BK of 64, lane t has two adjacent
// pieces, one in each part.
//
// Columns of b are permuted too, so that a lane's columns in two C matrices are
// eight adjacent ones, stored at once.
//
// The kernel loads piece t % WIDTH of rows t / WIDTH + i * STRIDE of the next
// tile of a to next_a[i]; with A_T, where eight items of a column are adjacent,
// piece t % WIDTH of items t / WIDTH + i * STRIDE of k. It defines COLUMN(from,
// c, k), the address of item k of the column c after the one at `from`. A kernel
// without COLUMN makes the B matrices itself.
#pragma once

#define SUBGROUPS (WM * WN)
#include "common/matrix_elements.glsl"
#include "common/pairs.glsl"
#include "common/constants.glsl"

#ifndef BK
#define BK 32
#endif
#define PARTS (BK / 32) // of 32 items of k in a step
#if A_T
#define LINES BK // of pieces in a tile of a
#define WIDTH (BM / 8)
#define LAYOUT_A COLUMN_MAJOR
#else
#define LINES BM
#define WIDTH (BK / 8)
#define LAYOUT_A ROW_MAJOR
#endif
#define PITCH (WIDTH + 1) // uvec4 per line, padded against bank conflicts
#define WG (SUBGROUPS * SG)
#define FM (BM / (16 * WM)) // fragments per subgroup
#define FN (BN / (16 * WN))
#define LOADS (LINES * WIDTH / WG)
#define STRIDE (WG / WIDTH) // lines between two loads
#define TILE (LINES * PITCH)

layout(local_size_x = WG) in;

// Double buffer: one tile is multiplied while the next is stored; the tile
// after it is prefetched into registers.
shared uvec4 tiles[2 * TILE];
uvec4 next_a[LOADS];

void stash(uint at) {
  REQUIRE(next_a.length() * WG == LINES * WIDTH && WG % WIDTH == 0)
  uint row = gl_LocalInvocationIndex / WIDTH;
  uint piece = gl_LocalInvocationIndex % WIDTH;
#if A_T
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    uint k = row + i * STRIDE;
    uint line = k / 4 % 2 * 16 + k / 2 % 2 * 8 + k / 8 * 2 + k % 2;
    tiles[at + line * PITCH + piece] = next_a[i];
  }
#else
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    UNROLL for (uint q = 0; q < 4; ++q) {
      tiles[at + (row + i * STRIDE) * PITCH + piece % PARTS * 4 + q]
           [piece / PARTS] = next_a[i][q];
    }
  }
#endif
}

// Position of a column of C among its lane's four, and index of the lane among
// the four that share a row.
uint place_in_lane(uint column) {
  return column % 2 + column / 8 * 2;
}
uint lane_of(uint column) {
  return column / 2 % 4;
}

// Column of b (of 32) assigned to column c of the first of two B matrices.
uint column_of(uint c) {
  return lane_of(c) * 8 + place_in_lane(c);
}
// Distance from a lane's first column in B matrix 0 to that in B matrix j, and
// to its second column in the same matrix.
#define COLUMN_AT(j) ((j) / 2 * 32 + (j) % 2 * 4)
#define SECOND_COLUMN column_of(8)

#ifdef COLUMN
uvec4 own_b[2 * FN];
uint64_t from_b; // address of the lane's first column at k = 0

// Sets from_b; `b` is the address of the workgroup's first column.
void set_column_addresses(uint64_t b, uint wn) {
  uint column = wn * FN * 16 + column_of(LANE / 4);
  from_b = COLUMN(b, column, LANE % 4 * 8);
}

#define LOAD_COLUMN(j, second, k0)                                            \
  Ptr_u32x4(COLUMN(from_b, COLUMN_AT(j) + (second) * SECOND_COLUMN, k0)).v[0]
#define LOAD_COLUMNS(j, k0)                                                   \
  own_b[2 * (j)] = LOAD_COLUMN(j, 0, k0);                                     \
  own_b[2 * (j) + 1] = LOAD_COLUMN(j, 1, k0);
#define LOAD_OWN(k0)                                                          \
  UNROLL for (uint j = 0; j < FN; ++j) {                                      \
    LOAD_COLUMNS(j, k0)                                                       \
  }
#endif

#if EMULATED
#include "gemm/emulated_tile.glsl"
#else
#define LOAD_MATRIX(m, at) coopMatLoad(m, tiles, at, PITCH, LAYOUT_A)
#endif

#if A_T
#define MATRIX_AT(i, h) ((h) * 16 * PITCH + (wm * FM + (i)) * 2)
#else
#define MATRIX_AT(i, h) ((wm * FM + (i)) * 16 * PITCH + 2 * (h))
#endif
// Loads the A matrices of half h of the tile at `from`.
#define LOAD_ROWS(x, from, h)                                                 \
  UNROLL for (uint i = 0; i < FM; ++i) {                                      \
    LOAD_MATRIX(x[i], (from) + MATRIX_AT(i, h));                              \
  }

#define MULTIPLY_COLUMNS(acc, x, j, h)                                        \
  {                                                                           \
    MATRIX_B w;                                                               \
    UNROLL for (uint r = 0; r < 2; ++r) {                                     \
      SET_PAIR(w, r, 0, own_b[2 * (j) + r][2 * (h)])                          \
      SET_PAIR(w, r, 1, own_b[2 * (j) + r][2 * (h) + 1])                      \
    }                                                                         \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      MULTIPLY(acc[i * FN + j], x[i], w, acc[i * FN + j]);                    \
    }                                                                         \
  }

// acc += the tile at `from` times own_b; loads own_b at k_next. NEXT stores the
// prefetched tile and fetches another. A macro keeps acc in registers.
#define MULTIPLY_STEP(acc, from, k_next, NEXT)                                \
  {                                                                           \
    MATRIX_A x[FM];                                                           \
    LOAD_ROWS(x, from, 0)                                                     \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      MULTIPLY_COLUMNS(acc, x, j, 0)                                          \
      if (j == 0) {                                                           \
        NEXT                                                                  \
      }                                                                       \
    }                                                                         \
    LOAD_ROWS(x, from, 1)                                                     \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      MULTIPLY_COLUMNS(acc, x, j, 1)                                          \
      LOAD_COLUMNS(j, k_next)                                                 \
    }                                                                         \
  }

#define CLEAR_FRAGMENTS(acc)                                                  \
  UNROLL for (uint i = 0; i < FM * FN; ++i) {                                 \
    acc[i] = MATRIX_ZERO;                                                     \
  }

// Calls PUT(r, c, v) for each eight adjacent items v of row r from column c on.
#define PUT_FRAGMENTS(acc, row0, col0, PUT)                                   \
  {                                                                           \
    uint row = row0 + wm * FM * 16 + LANE / 4;                                \
    uint column = col0 + wn * FN * 16 + LANE % 4 * 8;                         \
    UNROLL for (uint i = 0; i < FM; ++i) {                                    \
      UNROLL for (uint second = 0; second < 2; ++second) {                    \
        uint r = row + i * 16 + second * 8;                                   \
        UNROLL for (uint j = 0; j < FN; j += 2) {                             \
          float v[8];                                                         \
          [[unroll]] for (uint e = 0; e < 8; ++e) {                           \
            v[e] = acc[i * FN + j + e / 4][ELEMENT(second, e % 4)];           \
          }                                                                   \
          uint c = column + j * 16;                                           \
          PUT(r, c, v)                                                        \
        }                                                                     \
      }                                                                       \
    }                                                                         \
  }

// Stores eight items of a row of y, or of partial sums with SPLIT.
void store_eight(uint64_t to, float v[8]) {
#if SPLIT
  Ptr_f32x4(to).v[0] = vec4(v[0], v[1], v[2], v[3]);
  Ptr_f32x4(to).v[1] = vec4(v[4], v[5], v[6], v[7]);
#else
  uvec4 q;
  [[unroll]] for (uint p = 0; p < 4; ++p) {
    q[p] = pack2(v[2 * p], v[2 * p + 1]);
  }
  Ptr_u32x4(to).v[0] = q;
#endif
}
