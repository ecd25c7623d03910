// Probes cooperative matrices: y = a b through shared memory, as in the matrix
// kernels. x holds a row-major, then b column-major.
#define WG SG
#include "common/matrix_units.glsl"
#define X_PTR Ptr_u32x4
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

#define PIECES_A (MM * MK / 8)
#define PIECES (PIECES_A + MK * MN / 8)
shared uvec4 tile[PIECES];
shared float result[ITEMS_C];

void main() {
  for (uint i = gl_LocalInvocationIndex; i < PIECES; i += SG) {
    tile[i] = A.x.v[i];
  }
  barrier();
  MATRIX_A a;
  MATRIX_B b;
  MATRIX_C c = MATRIX_ZERO;
  LOAD_A(a, tile, 0, MK / 8, ROW_MAJOR);
  LOAD_B(b, tile, PIECES_A, MK / 8, COLUMN_MAJOR);
  MULTIPLY_ADD(c, a, b);
  STORE_C(c, result, 0, MN);
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < A.n; i += SG) {
    store(A.y, i, result[i]);
  }
}
