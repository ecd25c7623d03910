// variants: T=f32,f16,bf16 LANES=32,256 VEC=0,1 MODE=0; T=f32,f16,bf16 LANES=256 VEC=0,1 MODE=1; T=f32,bf16 LANES=256 VEC=0 MODE=2
// log(sum(exp)) of rows. MODE 0: one team a row. Long rows in two steps:
// MODE 1 leaves the maximum and the scaled sum of each of `parts` parts in
// `partial`, MODE 2 joins them.
#include "common/exp_sums.glsl"

#if MODE == 0
#define OPERANDS T_PTR x; T_PTR y;
#elif MODE == 1
#define OPERANDS T_PTR x; Ptr_c64 partial;
#else
#define OPERANDS Ptr_c64 partial; T_PTR y;
#endif
#define ARGS OPERANDS ROW_ARGS uint parts; uint chunk;
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
#if MODE == 2
  uint64_t row = uint64_t(group_index()) * TEAMS + TEAM;
  bool live = row < A.rows;
  row = live ? row : uint64_t(0);
  float top = -INF_F;
  bool nan = false;
  for (uint i = LANE; i < A.parts; i += LANES) {
    vec2 p = load(A.partial, row * A.parts + i);
    nan = nan || is_nan(p.y);
    top = max(top, p.x);
  }
  float row_top = team_max(top);
  float total = nan ? NAN_F : 0.0;
  for (uint i = LANE; i < A.parts; i += LANES) {
    vec2 p = load(A.partial, row * A.parts + i);
    total += p.x == row_top ? p.y : p.y * math_exp(p.x - row_top);
  }
#else
#if MODE == 0
  ROW_FIND
  uint begin = 0;
  uint end = n;
#else
  uint64_t job = uint64_t(group_index()) * TEAMS + TEAM;
  bool live = job < A.rows * A.parts;
  job = live ? job : uint64_t(0);
  uint64_t row = job / A.parts;
  uint64_t outer_row = row / A.inner;
  int64_t x_offset = int64_t(outer_row) * A.outer_stride +
      int64_t(row - outer_row * A.inner) * A.inner_stride;
  T_PTR x = MOVED(T, A.x, x_offset);
  uint begin = uint(job - row * A.parts) * A.chunk;
  uint end = min(begin + A.chunk, A.n);
#endif
  float top = -INF_F;
  float total = 0.0;
  for (uint i = begin + LANE * 4; i < end; i += LANES * 4) {
    add_exp4(FETCH4(x, i, end, -INF_F), top, total);
  }
  float row_top = team_max(top);
  total = rescale(total, top, row_top);
#endif
  total = team_sum(total);
  if (live && LANE == 0) {
#if MODE == 1
    store(A.partial, job, vec2(row_top, total));
#else
    store(A.y, row, row_top + math_log(total));
#endif
  }
}
