// Cooperative matrices: y = a b, 16 x 16, through shared memory as the matrix
// kernels do it. x holds a by rows, then b by columns.
#include "common/matrices.glsl"
#define X_PTR Ptr_u32x4
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

layout(local_size_x = SG) in;

shared uvec4 tile[64];
shared float result[256];

void main() {
  for (uint i = gl_LocalInvocationIndex; i < 64; i += SG) {
    tile[i] = A.x.v[i];
  }
  barrier();
  MATRIX_A a;
  MATRIX_B b;
  MATRIX_C c = MATRIX_C(0.0);
  coopMatLoad(a, tile, 0, 2, ROW_MAJOR);
  coopMatLoad(b, tile, 32, 2, COLUMN_MAJOR);
  c = coopMatMulAdd(a, b, c);
  coopMatStore(c, result, 0, 16, ROW_MAJOR);
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < A.n; i += SG) {
    store(A.y, i, result[i]);
  }
}
