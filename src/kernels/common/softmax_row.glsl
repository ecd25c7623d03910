// Softmax of a row in a team's registers (common/rows.glsl), shared by
// softmax.comp and router.comp, so that results are bit-identical.
#pragma once

#include "common/exp_sums.glsl"

#if LANES == 128 && CHUNKS == 1
// Sums in the order of a team of 32 lanes with four pieces each, as for many
// rows of up to 512 items, so that a single row has the same bits.
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
// Replaces v, a row of n items padded with -Inf, by its exponentials and
// returns the factor that normalizes them.
float softmax_factor(inout vec4 v[CHUNKS], uint n) {
  float top = -INF_F;
  EACH4 {
    top = max(top, max4(v[c]));
  }
  top = team_max(top);
  float total = 0.0;
  EACH4 {
    // Padding must add nothing, even if the whole row is -Inf.
    v[c] = exp4(v[c] - top);
    total += sum4(IN_ROW4(i, n, v[c], 0.0));
  }
  return 1.0 / row_sum(total);
}
#endif
