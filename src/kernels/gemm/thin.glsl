// Common part of the kernels of thin products. If a has few rows, the host
// swaps the operands and y is written transposed.
#define Y_AT(r, c)                                                            \
  (A.transposed != 0 ? Index(c) * Index(A.M) + Index(r)                       \
                     : Index(r) * Index(A.N) + Index(c))
#include "gemm/product.glsl"
#include "gemm/vec.glsl"

layout(local_size_x = WG) in;
