// Dense matrices a and b of rows_tile.glsl: of a batch, with any strides, or
// matrices of b for sorted rows of a (BATCH_SORTED).
//
// VA, VB: aligned pieces of eight items, none across an edge. HALVES multiplies
// bfloat16 operands, both contiguous along k, on float16 matrices.
#include "gemm/batch.h"
#if BATCH == BATCH_SORTED
#include "gemm/sorted_rows.glsl"
#else
#include "gemm/product.glsl"
#endif
#include "gemm/matrix_tile.glsl"
#include "gemm/pieces.glsl"

#define ALONG_A (A_T == 0)
#define ALONG_B (B_T != 0)
#define ENDS_INSIDE true
#define LOADS_B (BN * BK / 8 / WG)
uvec4 next_b[LOADS_B];
uint64_t from_b[LOADS_B];
Steps steps_a, steps_b;
uint first_row, first_column; // of the tile

#if BATCH != BATCH_SORTED
Y_PTR y_base;
#define row_inside(m) true
#define ROW_ITEM(inside, sum) (sum)
#define store_item(m, n, sum) put(y_base, m, n, sum)
#define HAS_ITEMS(k_begin, depth) k_begin < depth
#if VA && VB
#define IS_WHOLE(m0, end, n0, k_begin, depth)                                 \
  (k_begin < depth && (depth - k_begin) % BK == 0 && m0 + BM <= end &&        \
   n0 + BN <= A.N)
#endif

uint64_t row_address(uint m) {
  return uint64_t(base_a) + uint64_t(int64_t(Index(m) * A.a_row) * 2);
}
#endif

void set_b(uint m0, uint end, uint n0, bool inside) {
  first_row = m0;
  first_column = n0;
  steps_a = STEPS(A.a_col, A.a_row, WIDTH_A, ALONG_A);
  steps_b = STEPS(A.b_row, A.b_col, WIDTH_B, ALONG_B);
  [[unroll]] for (uint i = 0; i < LOADS_B; ++i) {
    if (i == 0 || !inside) {
      uint n = n0 + LINE_OF(i, WIDTH_B, ALONG_B);
      n = inside ? n : min(n, A.N - (ALONG_B ? 1 : 8));
      from_b[i] = uint64_t(base_b) + uint64_t(int64_t(Index(n) * A.b_col) * 2);
    }
  }
  if (inside) {
    BEGIN_INSIDE(from_a, steps_a, WIDTH_A, ALONG_A)
    BEGIN_INSIDE(from_b, steps_b, WIDTH_B, ALONG_B)
  }
}

#define FETCH_A                                                               \
  if (inside) {                                                               \
    FETCH_INSIDE(next_a, from_a, steps_a)                                     \
  } else if (VA != 0) {                                                       \
    FETCH_PIECES(next_a, from_a, steps_a, WIDTH_A, ALONG_A)                   \
  } else {                                                                    \
    FETCH_ITEMS(                                                              \
        next_a, base_a, first_row, A.M, A.a_row, A.a_col, WIDTH_A, ALONG_A)   \
  }

void fetch_b(uint span, uint k0, uint depth, bool inside) {
  if (inside) {
    FETCH_INSIDE(next_b, from_b, steps_b)
  } else if (VB != 0) {
    FETCH_PIECES(next_b, from_b, steps_b, WIDTH_B, ALONG_B)
  } else {
    FETCH_ITEMS(
        next_b, base_b, first_column, A.N, A.b_col, A.b_row, WIDTH_B, ALONG_B)
  }
}

void clear_b(uint k0, uint depth) {
  CLEAR_PIECES(next_b, WIDTH_B, ALONG_B)
}

void stash_b(uint span) {
  STASH(tile_b, next_b, LOADS_B, WIDTH_B)
}

#if HALVES
#include "gemm/half_items.glsl"
#endif
