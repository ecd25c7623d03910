// Product of a few dozen rows of 16-bit floats and a matrix stored along k (a
// linear layer), by skinny_tile.glsl. The matrix is quantized if BITS is defined;
// else as gemm.comp, and rows of both consist of aligned groups of eight items,
// none across an edge.
#ifdef BITS
#include "quant/load_skinny.glsl"
#else
#include "gemm/product.glsl"
#define DEPTH 1
#define CHUNK_OF(c, s) (2 * (s) + (c))
#include "gemm/skinny_tile.glsl"

#define LOADS_B (ROWS * 8 / SG)
#define LOAD_OF_B(i) load_of(i, LOADS_B, lane, SG, CHUNK_B)
uvec4 next_b[LOADS_B];

uint64_t row_address(uint m) {
  return uint64_t(MOVED(T, base_a, int64_t(min(m, A.M - 1)) * int64_t(A.a_row)));
}

void fetch_b(uint d, uint k0) {
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    Load l = LOAD_OF_B(i);
    int64_t at = int64_t(min(n0 + l.row, A.N - 1)) * int64_t(A.b_col);
    next_b[i] = eight(uint64_t(MOVED(T, base_b, at)), k0 + l.k);
  }
}

void stash_b(uint d, uint s) {
  REQUIRE(next_b.length() * SG == ROWS * UNIT / 8 && LOADS_B % 2 == 0)
  REQUIRE(SG % 4 == 0)
  [[unroll]] for (uint i = 0; i < LOADS_B / 2; ++i) {
    tile_b[own_b + LOAD_OF_B(i).slot] = next_b[s * (LOADS_B / 2) + i];
  }
}

Y_PTR y_base;
void store_sum(uint r, uint c, float sum) {
  if (r < A.M && c < A.N) {
    put(y_base, r, c, sum);
  }
}

void multiply(uint tile) {
  y_base = y_matrix();
  place(tile % A.m_tiles * BM, tile / A.m_tiles * BN);
  [[unroll]] for (uint f = 0; f < FM * FN; ++f) {
    acc[f] = MATRIX_C(0.0);
  }
  multiply_units(k_begin);
  store_sums();
}
#endif
