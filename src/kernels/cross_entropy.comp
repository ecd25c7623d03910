// Rows of logits, one class index a row (negative ones count from the end):
//   y = log(sum(exp(x))) - x[target], in float32.
#include "common/exp_sums.glsl"
#define ARGS_BLOCK CrossEntropyArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_FIND
  float top;
  float total = team_exp_sum(x, 0, n, top);
  if (live && LANE == 0) {
    int t = load(A.target, row);
    float picked = load(x, t < 0 ? t + int(n) : t);
    // The logits first: they are of one magnitude.
    store(A.y, row, math_log(total) + (top - picked));
  }
}
