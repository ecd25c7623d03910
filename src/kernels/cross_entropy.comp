// Cross entropy of rows of logits with one class index per row, in float32;
// negative indices count from the end:
//   y = log(sum(exp(x))) - x[target]
#include "common/bounds.glsl"
#include "common/exp_sums.glsl"
#define ARGS_BLOCK CrossEntropyArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_FIND
  float top;
  float total = team_exp_sum(x, 0, n, top);
  if (live && LANE == 0) {
    bool inside = true;
    uint t = named(load(A.target, row), n, row, inside);
    float picked = load(x, t);
    picked = inside ? picked : 0.0;
    // Subtracts the logits first because they have similar magnitudes.
    store(A.y, row, math_log(total) + (top - picked));
  }
}
