// What the kernels of thin products share: with few rows in a, the host
// exchanges the operands, and y is written transposed.
#define Y_AT(r, c)                                                            \
  (A.transposed != 0 ? Index(c) * Index(A.m) + Index(r)                       \
                     : Index(r) * Index(A.n) + Index(c))
#include "gemm/product.glsl"
#include "gemm/vec.glsl"

layout(local_size_x = WG) in;
