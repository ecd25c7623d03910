// Log-sum-exp of rows, one team per row. With PARTS a team reduces one part of
// a row to its maximum and scaled sum in `partial` (logsumexp_join.comp).
#include "common/exp_sums.glsl"
#define ARGS_BLOCK LogSumExpArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
#if PARTS
  uint64_t job = team_index();
  bool live = job < A.rows.count * A.parts;
  job = live ? job : uint64_t(0);
  uint64_t row = job / A.parts;
  T_PTR x = MOVED(T, A.x, row_offset(A.rows, row));
  uint begin = uint(job - row * A.parts) * A.chunk;
  uint end = min(begin + A.chunk, A.rows.n);
#else
  ROW_FIND
  uint begin = 0;
  uint end = n;
#endif
  float top;
  float total = team_exp_sum(x, begin, end, top);
  if (live && LANE == 0) {
#if PARTS
    store(A.partial, job, vec2(top, total));
#else
    store(A.y, row, top + math_log(total));
#endif
  }
}
