// The softmax of a row that a team keeps in registers (common/rows.glsl), in
// the parts that softmax.comp and router.comp share, so that both have the same
// bits.
#ifndef SOFTMAX_ROW_GLSL
#define SOFTMAX_ROW_GLSL

#include "common/exp_sums.glsl"

#if CHUNKS
// v: items of a row of n, -Inf beyond its end; becomes their exponentials. What
// these are to be multiplied with.
float softmax_factor(inout vec4 v[CHUNKS], uint n) {
  float top = -INF_F;
  EACH4 {
    top = max(top, max4(v[c]));
  }
  top = team_max(top);
  float total = 0.0;
  EACH4 {
    // What lies beyond the row adds nothing, even if the row is all -Inf.
    v[c] = exp4(v[c] - top);
    total += sum4(IN_ROW4(i, n, v[c], 0.0));
  }
  return 1.0 / team_sum(total);
}
#endif

#endif
