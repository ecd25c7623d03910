// Tiles of a (BM x BK) and b (BK x BN) in shared memory, as Acc, for BM x BN of
// y; an invocation makes TM x TN of it, in pieces of four neighbours.
// A_T: a's rows are the unit-stride direction. B_T: b's k is.
#include "gemm/acc.glsl"

#define BK 16
#define GX (BN / TN)
#define GY (BM / TM)
#define THREADS (GX * GY)
#define ROW_A (BM + 4)
#define ROW_B (BN + 4)

layout(local_size_x = THREADS) in;

shared Acc tile_a[BK * ROW_A];
shared Acc tile_b[BK * ROW_B];
Acc acc[TM * TN];

// Item e of a tile, for consecutive invocations along the unit stride.
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
  return k_a(e) * ROW_A + row_a(e);
}
uint slot_b(uint e) {
  return k_b(e) * ROW_B + col_b(e);
}

// Items of a and b, zero outside; the kernel has them.
Acc item_a(uint r, uint k);
Acc item_b(uint k, uint c);

// Straight into shared memory, in rolled loops: where the compiler is slow and
// nothing hides latency anyway (software devices).
void stage_tiles(uint row0, uint col0, uint k0) {
  uint t = gl_LocalInvocationIndex;
  [[dont_unroll]] for (uint e = t; e < BM * BK; e += THREADS) {
    tile_a[slot_a(e)] = item_a(row0 + row_a(e), k0 + k_a(e));
  }
  [[dont_unroll]] for (uint e = t; e < BK * BN; e += THREADS) {
    tile_b[slot_b(e)] = item_b(k0 + k_b(e), col0 + col_b(e));
  }
}

// Rows and columns of the tile that are the invocation's.
uint own_row(uint i) {
  return i / 4 * (GY * 4) + gl_LocalInvocationIndex / GX * 4 + i % 4;
}
uint own_col(uint j) {
  return j / 4 * (GX * 4) + gl_LocalInvocationIndex % GX * 4 + j % 4;
}

void clear_acc() {
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    acc[i] = ZERO;
  }
}

// acc += a's rows times b's columns, for one k of the tiles.
void multiply_k(uint k) {
  Acc x[TM];
  Acc w[TN];
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    x[i] = tile_a[k * ROW_A + own_row(i)];
  }
  [[unroll]] for (uint j = 0; j < TN; ++j) {
    w[j] = tile_b[k * ROW_B + own_col(j)];
  }
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      acc[i * TN + j] = FMA(x[i], w[j], acc[i * TN + j]);
    }
  }
}
