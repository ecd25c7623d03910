// Tiled product of rows of 16-bit floats and a matrix with cooperative matrices
// and float32 sums (rows_tile.glsl). The matrix is dense (gemm.h), or quantized
// (quant/product.h; BITS is defined): y = x @ W^T (TRANSPOSE) or x @ W.
#ifndef BITS
#include "gemm/load_dense.glsl"
#else
#include "quant/load_quantized.glsl"
#endif
#include "gemm/rows_tile.glsl"

#if SORTED
void main() {
  multiply_sorted(group_index());
}
#elif defined(BITS)
void main() {
  multiply_tile();
}
#else
void multiply(uint tile) {
  uvec2 origin = banded(tile) * uvec2(BM, BN);
  y_base = y_matrix();
  multiply(origin.x, origin.y, A.M, true, k_begin, k_end);
}
#endif
