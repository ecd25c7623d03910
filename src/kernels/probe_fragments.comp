// Probes the element layout of cooperative matrices. x holds 0 to 255
// row-major; each lane writes the elements that it holds of an A, B or C matrix
// to y.
#include "common/matrices.glsl"
#define X_PTR Ptr_u32x4
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

layout(local_size_x = SG) in;

#if INPUT
shared uvec4 tile[32];
#else
shared float tile[256];
#endif

void main() {
#if INPUT
  for (uint i = gl_LocalInvocationIndex; i < 32; i += SG) {
    tile[i] = A.x.v[i];
  }
  barrier();
#if INPUT == 2
  MATRIX_B matrix;
#else
  MATRIX_A matrix;
#endif
  coopMatLoad(matrix, tile, 0, 2, ROW_MAJOR);
#else
  for (uint i = gl_LocalInvocationIndex; i < 256; i += SG) {
    tile[i] = float(i);
  }
  barrier();
  MATRIX_C matrix;
  coopMatLoad(matrix, tile, 0, 16, ROW_MAJOR);
#endif
  [[unroll]] for (uint e = 0; e < 256 / SG; ++e) {
    uint at = gl_SubgroupInvocationID * (256 / SG) + e;
    if (at < A.n) {
      store(A.y, at, float(matrix[e]));
    }
  }
}
