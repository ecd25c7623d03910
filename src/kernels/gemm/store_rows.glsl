// Stores a tile of cooperative matrices as rows of A.N items from y_base on,
// through ROW_ITEM(); rows for which row_inside() is false become 0. SPLIT and
// AXPBY: through the kernel's store_item().
#pragma once

// Pieces of eight items of a fragment per invocation.
#define PIECES ((ITEMS_C + 8 * SG - 1) / (8 * SG))

// row_inside() for the pieces of the subgroup's fragments from row m0 on: bit i
// * PIECES + p is for piece p of fragment i. Called before the main loop, so
// that its loads do not delay the stores.
uint find_rows_inside(uint m0, uint end) {
  uint bits = 0u;
  [[unroll]] for (uint i = 0; i < FM; ++i) {
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      uint m = m0 + i * MM + (p * 8 * SG + LANE * 8) / MN;
      bits |= row_inside(min(m, end - 1u)) ? 1u << (i * PIECES + p) : 0u;
    }
  }
  return bits;
}

#ifndef Y_AT
#define Y_AT(r, c) (uint64_t(r) * A.N + (c))
#endif
#ifndef FINISH_CORNER
#define FINISH_CORNER(corner, i, j)
#endif

// Stores a fragment from the subgroup's corner of `stage`; `inside_bits` has one
// bit per piece.
void store_fragment(
    uint corner, uint m0, uint n0, uint end, bool live, uint inside_bits) {
#if !SPLIT && !AXPBY
  bool whole = A.N % 8u == 0 && (uint64_t(y_base) & 15ul) == 0ul;
  [[unroll]] for (uint e = 0; e < ITEMS_C; e += 8 * SG) {
    uint at = e + LANE * 8;
    uint m = m0 + at / MN;
    uint n = n0 + at % MN;
    bool held = ITEMS_C % (8 * SG) == 0 || at < ITEMS_C;
    if (live && held && m < end && n < A.N) {
      bool inside = (inside_bits >> (e / (8 * SG)) & 1u) != 0u;
      if (whole) {
        uvec4 q;
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          q[c] = pack2(
              ROW_ITEM(inside, stage[corner + at + 2 * c]),
              ROW_ITEM(inside, stage[corner + at + 2 * c + 1]));
        }
        uint64_t to = uint64_t(int64_t(Y_AT(m, n)) * 2);
        Ptr_u32x4(uint64_t(y_base) + to).v[0] = q;
      } else {
        for (uint c = 0; c < 8 && n + c < A.N; ++c) {
          float sum = stage[corner + at + c];
          store(y_base, Y_AT(m, n + c), ROW_ITEM(inside, sum));
        }
      }
    }
  }
#else
  UNROLL for (uint e = 0; e < ITEMS_C; e += SG) {
    uint at = e + LANE;
    uint m = m0 + at / MN;
    uint n = n0 + at % MN;
    if (live && m < end && n < A.N) {
      store_item(m, n, stage[corner + at]);
    }
  }
#endif
}

// Stores the subgroup's fragments one by one through its corner of shared
// memory, because their element layout is unknown. A macro keeps acc in
// registers. `rows_inside`: find_rows_inside() of the subgroup's first row.
#define STORE_FRAGMENTS(acc, m0, n0, end, live, rows_inside)                  \
  UNROLL for (uint i = 0; i < FM; ++i) {                                      \
    UNROLL for (uint j = 0; j < FN; ++j) {                                    \
      uint corner = SUBGROUP * ITEMS_C;                                       \
      SYNC_SUBGROUP                                                           \
      STORE_C(acc[i * FN + j], stage, corner, MN);                            \
      SYNC_SUBGROUP                                                           \
      FINISH_CORNER(corner, i, j)                                             \
      uint m = m0 + (wm * FM + i) * MM;                                       \
      uint n = n0 + (wn * FN + j) * MN;                                       \
      uint bits = rows_inside >> (i * PIECES);                                \
      store_fragment(corner, m, n, end, live, bits);                          \
    }                                                                         \
  }
