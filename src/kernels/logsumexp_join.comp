// Combines the maxima and scaled sums of the parts of each row
// (logsumexp.comp).
#include "common/exp_sums.glsl"
#define ARGS_BLOCK LogSumExpJoinArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  uint64_t row = team_index();
  bool live = row < A.rows;
  row = live ? row : uint64_t(0);
  float top = -INF_F;
  bool nan = false;
  for (uint i = LANE; i < A.parts; i += LANES) {
    vec2 p = load(A.partial, row * A.parts + i);
    nan = nan || is_nan(p.y);
    top = max(top, p.x);
  }
  top = team_max(top);
  float total = nan ? NAN_F : 0.0;
  for (uint i = LANE; i < A.parts; i += LANES) {
    vec2 p = load(A.partial, row * A.parts + i);
    total += p.x == top ? p.y : p.y * math_exp(p.x - top);
  }
  total = team_sum(total);
  if (live && LANE == 0) {
    store(A.y, row, top + math_log(total));
  }
}
