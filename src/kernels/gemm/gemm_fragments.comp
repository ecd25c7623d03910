// Tiled product of 16-bit floats with fragment_tile.glsl, for NVIDIA's element
// layout of matrices; otherwise as rows_coopmat.comp. Rows of a (with A_T
// columns) and columns of b are contiguous, in whole pieces of eight; tiles lie
// inside the matrices, and k is a multiple of BK. With Y_T, y is written
// transposed.
#if Y_T
#define Y_AT(r, c) (Index(c) * Index(A.M) + Index(r))
#endif
#include "gemm/product.glsl"

#define COLUMN(from, c, k)                                                    \
  ((from) + (k) * 2 + uint64_t(int64_t(c) * int64_t(A.b_col) * 2))
#if A_T
#define LINE A.a_col
#define PIECE_AT(k) (int64_t(k) * int64_t(A.a_col) * 2)
#else
#define LINE A.a_row
#define PIECE_AT(k) int64_t((k) * 2)
#endif
#include "gemm/fragment_tile.glsl"

uint64_t from_a; // address of the invocation's first piece at k = 0
int64_t step_a; // bytes between its pieces

void fetch(uint k0) {
  UNROLL for (uint i = 0; i < LOADS; ++i) {
    int64_t at = PIECE_AT(k0) + int64_t(i) * step_a;
    next_a[i] = Ptr_u32x4(from_a + uint64_t(at)).v[0];
  }
}

void set_addresses(uint row0, uint col0, uint wn) {
  uint slow = gl_LocalInvocationIndex / WIDTH;
  uint fast = gl_LocalInvocationIndex % WIDTH * 8;
  Index a = Index(row0) * A.a_row + Index(slow) * LINE + Index(fast);
  from_a = uint64_t(base_a) + uint64_t(int64_t(a) * 2);
  step_a = int64_t(LINE) * (STRIDE * 2);
  Index b = Index(col0) * A.b_col;
  set_column_addresses(uint64_t(base_b) + uint64_t(int64_t(b) * 2), wn);
}

#if Y_T
#define PUT(r, c, v)                                                          \
  [[unroll]] for (uint e = 0; e < 8; ++e) {                                   \
    if (r >= origin.x && c + e >= origin.y) {                                 \
      put(y, r, c + e, v[e]);                                                 \
    }                                                                         \
  }
#else
// Stores eight items of a row.
void put_eight(Y_PTR y, uint r, uint c, float v[8]) {
#if AXPBY
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    v[e] = A.alpha * v[e] +
        A.beta * load(base_c, Index(r) * A.c_row + Index(c + e) * A.c_col);
  }
#endif
  Index at = Index(r) * Index(A.N) + Index(c);
  store_eight(uint64_t(y) + uint64_t(int64_t(at) * Y_SIZE), v);
}
#define PUT(r, c, v)                                                          \
  if (r >= origin.x && c >= origin.y) {                                       \
    put_eight(y, r, c, v);                                                    \
  }
#endif

void multiply(uint tile) {
  uvec2 origin = banded(tile) * uvec2(BM, BN);
  // The last tiles are shifted to lie inside and skip items of earlier tiles.
  uint row0 = min(origin.x, A.M - BM), col0 = min(origin.y, A.N - BN);
  uint wm = SUBGROUP % WM, wn = SUBGROUP / WM;

  MATRIX_C acc[FM * FN];
  CLEAR_FRAGMENTS(acc)
  set_addresses(row0, col0, wn);
  uint last = max(k_end, k_begin + BK) - BK; // the range of k may be empty
  fetch(k_begin);
  LOAD_OWN(k_begin)
  stash(0);
  fetch(min(k_begin + BK, last));
  uint from = 0;
  for (uint k0 = k_begin; k0 < k_end; k0 += BK) {
    barrier();
    MULTIPLY_STEP(acc, from, min(k0 + BK, last), {
      stash(TILE - from);
      fetch(min(k0 + 2 * BK, last));
    })
    from = TILE - from;
  }

  Y_PTR y = y_matrix();
  PUT_FRAGMENTS(acc, row0, col0, PUT)
}
