// variants: T=f32,f16,bf16 LANES=32,256 VEC=0,1
// Rows of logits, one class index a row (negative ones count from the end):
//   y = log(sum(exp(x))) - x[target], in float32.
#include "common/exp_sums.glsl"

#define ARGS T_PTR x; Ptr_i32 target; Ptr_f32 y; ROW_ARGS
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_FIND
  float top = -INF_F;
  float total = 0.0;
  for (uint i = LANE * 4; i < n; i += LANES * 4) {
    add_exp4(FETCH4(x, i, n, -INF_F), top, total);
  }
  float row_top = team_max(top);
  total = team_sum(rescale(total, top, row_top));
  if (live && LANE == 0) {
    int t = load(A.target, row);
    float picked = load(x, t < 0 ? t + int(n) : t);
    // The logits first: they are of one magnitude.
    store(A.y, row, math_log(total) + (row_top - picked));
  }
}
