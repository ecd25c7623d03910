// variants: T=f32,f16,bf16 LANES=32,256 VEC=0,1
// Rows of logits, one class index a row (negative ones count from the end):
//   y = log(sum(exp(x))) - x[target], in float32.
#include "common/math.glsl"
#include "common/rows.glsl"

#define ARGS T_PTR x; Ptr_i32 target; Ptr_f32 y; ROW_ARGS
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)
TEAM_REDUCE(team_max, float, lane_max, max_scratch)

vec4 exp4(vec4 v) {
  return vec4(math_exp(v.x), math_exp(v.y), math_exp(v.z), math_exp(v.w));
}

void main() {
  ROW_FIND
  float top = -INF_F;
  float total = 0.0;
  for (uint i = LANE * 4; i < n; i += LANES * 4) {
    vec4 v = FETCH4(x, i, n, -INF_F);
    float next = max(top, max4(v));
    // As in logsumexp.comp.
    total = abs(next) == INF_F
        ? (nan4(v) || is_nan(total) ? NAN_F : next > 0.0 ? 1.0 : total)
        : total * math_exp(top - next) + sum4(exp4(v - next));
    top = next;
  }
  float row_top = team_max(top);
  total = is_nan(total) ? NAN_F
      : top == row_top  ? total
                        : total * math_exp(top - row_top);
  total = team_sum(total);
  if (live && LANE == 0) {
    int t = load(A.target, row);
    float picked = load(x, t < 0 ? t + int(n) : t);
    // The logits first: they are of one magnitude.
    store(A.y, row, math_log(total) + (row_top - picked));
  }
}
