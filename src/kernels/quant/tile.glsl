// Products of many rows of x, tile by tile: what qmm.comp and qmm_coopmat.comp
// share. They define BM, BN, BK and WG, and multiply().
//
// SORTED: product i is one row of x and the matrix rhs[i], and equal matrices
// stand together. A tile of rows makes one pass over K for each matrix in it.
#ifndef TILE_GLSL
#define TILE_GLSL

#include "common/loops.glsl"
#include "quant/operands.glsl"

// Rows begin to end - 1 of the tile's rows from m0 on, by the columns of the
// located weights from n0 on.
void multiply(uint m0, uint n0, uint begin, uint end, bool live);

// Item 0 of a row of x, from x_base on.
int64_t x_item(uint m) {
#if SORTED
  return int64_t(load(A.lhs, m)) * A.stack.x_matrix;
#else
  return int64_t(m) * A.x_row;
#endif
}

// A tile of w in runs of `width` items that lie together.
#if TRANSPOSE
#define W_ROWS A.N
#define W_ITEMS A.K
#else
#define W_ROWS A.K
#define W_ITEMS A.N
#endif
struct Run {
  uint row, at;
  bool inside;
};
Run weight_run(uint i, uint width, uint n0, uint k0) {
#if TRANSPOSE
  uint row = n0 + i / (BK / width);
  uint at = k0 + i % (BK / width) * width;
#else
  uint row = k0 + i / (BN / width);
  uint at = n0 + i % (BN / width) * width;
#endif
  return Run(row, at, row < W_ROWS && at < W_ITEMS);
}

#if SORTED
shared uint matrix_of[BM];

void multiply_tile(uint m0, uint n0, uint product, bool live) {
  uint last = min(m0 + BM, A.M);
  for (uint i = gl_LocalInvocationIndex; i < BM; i += WG) {
    matrix_of[i] = load(A.rhs, min(m0 + i, A.M - 1u));
  }
  barrier();
  uint begin = m0;
  // Each turn takes one of the tile's rows, or more.
  BOUNDED_WHILE(begin < last, BM) {
    uint matrix = matrix_of[begin - m0];
    uint end = begin + 1u;
    BOUNDED_WHILE(end < last && matrix_of[end - m0] == matrix, BM) {
      ++end;
    }
    locate_matrix(matrix);
    multiply(m0, n0, begin, end, live);
    begin = end;
  }
}
#else
void multiply_tile(uint m0, uint n0, uint product, bool live) {
  locate(product);
  multiply(m0, n0, m0, A.M, live);
}
#endif

#endif
