// Probes the precision of cooperative matrices in long sums: y = a b, where x
// holds a of MM rows by DEPTH, then MK rows of b column-major, which repeat.
#define WG SG
#include "common/matrix_units.glsl"
#define X_PTR Ptr_u32x4
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

#define PIECES_A (MM * MK / 8)
#define PIECES_B (MK * MN / 8)
shared uvec4 tile[PIECES_A + PIECES_B];
shared float result[ITEMS_C];

void main() {
  for (uint i = gl_LocalInvocationIndex; i < PIECES_B; i += SG) {
    tile[PIECES_A + i] = A.x.v[MM * DEPTH / 8 + i];
  }
  barrier();
  MATRIX_A a;
  MATRIX_B b;
  MATRIX_C c = MATRIX_ZERO;
  LOAD_B(b, tile, PIECES_A, MK / 8, COLUMN_MAJOR);
  for (uint k = 0; k < DEPTH / 8; k += MK / 8) {
    for (uint i = gl_LocalInvocationIndex; i < PIECES_A; i += SG) {
      tile[i] = A.x.v[i / (MK / 8) * (DEPTH / 8) + k + i % (MK / 8)];
    }
    barrier();
    LOAD_A(a, tile, 0, MK / 8, ROW_MAJOR);
    MULTIPLY_ADD(c, a, b);
    barrier();
  }
  STORE_C(c, result, 0, MN);
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < A.n; i += SG) {
    store(A.y, i, result[i]);
  }
}
