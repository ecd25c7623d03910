// The softmax of a row that a team keeps in registers (common/rows.glsl), in
// the parts that softmax.comp and router.comp share, so that both have the same
// bits.
#ifndef SOFTMAX_ROW_GLSL
#define SOFTMAX_ROW_GLSL

#include "common/exp_sums.glsl"

#if LANES == 128 && CHUNKS == 1
// As a team of 32 lanes adds, whose lanes have four pieces: that is how many rows
// of up to 512 items are worked on, and a row has the same bits alone.
TEAM_REDUCE_OF(32, sum_of_32, float, lane_add, narrow_scratch)
shared float pieces[WG_SIZE];
float row_sum(float x) {
  pieces[gl_LocalInvocationIndex] = x;
  barrier();
  uint first = TEAM * LANES + LANE % 32;
  x = pieces[first];
  [[unroll]] for (uint c = 1; c < 4; ++c) {
    x += pieces[first + 32 * c];
  }
  return sum_of_32(x);
}
#else
#define row_sum team_sum
#endif

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
  return 1.0 / row_sum(total);
}
#endif

#endif
