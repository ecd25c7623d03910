// Tiles of a (BM x BK) and b (BK x BN) in shared memory, as pieces along rows of a
// and columns of b, for BM x BN of y; an invocation computes TM x TN of it in
// blocks of PIECE x PIECE.
// A_T: a has unit stride along rows. B_T: b has unit stride along k.
#include "gemm/acc.glsl"

#ifndef BK
#define BK 16
#endif
#define GX (BN / TN)
#define GY (BM / TM)
#define THREADS (GX * GY)
// Row pitch in pieces; one extra piece spreads a column over banks.
#define ROW_A (BM / PIECE + 1)
#define ROW_B (BN / PIECE + 1)

layout(local_size_x = THREADS) in;

shared Piece tile_a[BK * ROW_A];
shared Piece tile_b[BK * ROW_B];
Acc acc[TM * TN];

// Row and k of item e of a tile; consecutive items follow the unit stride.
uint row_a(uint e) {
  return A_T != 0 ? e % BM : e / BK;
}
uint k_a(uint e) {
  return A_T != 0 ? e / BM : e % BK;
}
uint k_b(uint e) {
  return B_T != 0 ? e % BK : e / BN;
}
uint col_b(uint e) {
  return B_T != 0 ? e / BK : e % BN;
}
uint slot_a(uint e) {
  return k_a(e) * (PIECE * ROW_A) + row_a(e);
}
uint slot_b(uint e) {
  return k_b(e) * (PIECE * ROW_B) + col_b(e);
}
#define ITEM(pieces, i) pieces[(i) / PIECE][(i) % PIECE]

// Items of a and b, zero outside the matrices; defined by the kernel.
Acc item_a(uint r, uint k);
Acc item_b(uint k, uint c);

// Loads tiles straight into shared memory, in rolled loops, for software
// devices: their compiler is slow and prefetching gains nothing.
void stage_tiles(uint row0, uint col0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[dont_unroll]] for (uint e = t; e < BM * BK; e += THREADS) {
    ITEM(tile_a, slot_a(e)) = item_a(row0 + row_a(e), k0 + k_a(e));
  }
  [[dont_unroll]] for (uint e = t; e < BK * BN; e += THREADS) {
    ITEM(tile_b, slot_b(e)) = item_b(k0 + k_b(e), col0 + col_b(e));
  }
}

// The invocation's position among GX x GY. 32 invocations form a block of 8 x
// 4, so that few distinct pieces are read at a time; adjacent pairs, and pairs
// of pairs, differ in one direction only, so that shared pieces are read once.
#define LANES_X 8
#define LANES_Y 4
uint own_x() {
  uint t = gl_LocalInvocationIndex;
  return t / 32 % (GX / LANES_X) * LANES_X + ((t & 1) | (t >> 1 & 6));
}
uint own_y() {
  uint t = gl_LocalInvocationIndex;
  return t / 32 / (GX / LANES_X) * LANES_Y + ((t >> 1 & 1) | (t >> 3 & 2));
}

// The invocation's rows and columns of the tile.
uint own_row(uint i) {
  return i / PIECE * (GY * PIECE) + own_y() * PIECE + i % PIECE;
}
uint own_col(uint j) {
  return j / PIECE * (GX * PIECE) + own_x() * PIECE + j % PIECE;
}

void clear_acc() {
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    acc[i] = ZERO;
  }
}

// acc += the product for one k of the tiles.
void multiply_k(uint k) {
  Piece x[TM / PIECE];
  Piece w[TN / PIECE];
  [[unroll]] for (uint i = 0; i < TM / PIECE; ++i) {
    x[i] = tile_a[k * ROW_A + i * GY + own_y()];
  }
  [[unroll]] for (uint j = 0; j < TN / PIECE; ++j) {
    w[j] = tile_b[k * ROW_B + j * GX + own_x()];
  }
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      acc[i * TN + j] = FMA(ITEM(x, i), ITEM(w, j), acc[i * TN + j]);
    }
  }
}
