// Cooperative matrices: y = a b, 16 x 16, through shared memory as the matrix
// kernels do it. x holds a by rows, then b by columns.
#include "common/types.glsl"
#define X_PTR Ptr_u32x4
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeArgs
#include "common/args.glsl"

#ifdef T_IS_bf16
#define Item bfloat16_t
#else
#define Item float16_t
#endif

layout(local_size_x = SG) in;

shared uvec4 tile[64];
shared float result[256];

void main() {
  for (uint i = gl_LocalInvocationIndex; i < 64; i += SG) {
    tile[i] = A.x.v[i];
  }
  barrier();
  coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
  coopmat<Item, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c =
      coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  coopMatLoad(a, tile, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(b, tile, 32, 2, gl_CooperativeMatrixLayoutColumnMajor);
  c = coopMatMulAdd(a, b, c);
  coopMatStore(c, result, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < A.n; i += SG) {
    store(A.y, i, result[i]);
  }
}
