// Takes time at a known rate: each invocation reads every (invocations)-th item
// of x, or computes `turns` times eight multiplications and additions.
#include "common/types.glsl"
#define X_PTR Ptr_f32
#define Y_PTR Ptr_f32
#include "probe.h"
#define ARGS_BLOCK ProbeRateArgs
#include "common/args.glsl"

layout(local_size_x = 128) in;

void main() {
  uint i = thread_index();
#if ARITHMETIC
  vec4 a = vec4(i, i + 1, i + 2, i + 3), b = a + 4.0;
  for (uint turn = 0; turn < A.turns; ++turn) {
    a = fma(a, vec4(0.5), vec4(1.0));
    b = fma(b, vec4(0.5), vec4(1.0));
  }
  float sum = dot(a + b, vec4(1.0));
#else
  uint step = A.n / A.turns;
  float sum = 0.0;
  for (uint turn = 0; turn < A.turns; ++turn) {
    sum += load(A.x, i + turn * step);
  }
#endif
  store(A.y, i, sum);
}
