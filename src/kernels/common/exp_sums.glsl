// Sums of exponentials of rows (common/rows.glsl), relative to a maximum.
#pragma once

#include "common/math.glsl"
#include "common/rows.glsl"

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)
TEAM_REDUCE(team_max, float, lane_max, max_scratch)

vec4 exp4(vec4 v) {
  return vec4(math_exp(v.x), math_exp(v.y), math_exp(v.z), math_exp(v.w));
}

// Raises the maximum `top` to that of v and adds exp(v - top) to `total`.
void add_exp4(vec4 v, inout float top, inout float total) {
  float next = max(top, max4(v));
  // An infinite maximum rescales nothing, because Inf - Inf would add a NaN.
  total = abs(next) == INF_F
      ? (nan4(v) || is_nan(total) ? NAN_F : next > 0.0 ? 1.0 : total)
      : total * math_exp(top - next) + sum4(exp4(v - next));
  top = next;
}

// Maximum of items begin..end of the team's row, and the sum of exponentials
// relative to it.
float team_exp_sum(T_PTR x, uint begin, uint end, out float row_top) {
  float top = -INF_F;
  float total = 0.0;
  for (uint i = begin + LANE * 4; i < end; i += LANES * 4) {
    add_exp4(FETCH4(x, i, end, -INF_F), top, total);
  }
  row_top = team_max(top);
  total = is_nan(total) ? NAN_F
      : top == row_top  ? total
                        : total * math_exp(top - row_top);
  return team_sum(total);
}
