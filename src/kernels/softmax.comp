// variants: T=f32,f16,bf16 LANES=32 CHUNKS=1 VEC=0,1; T=f32,f16,bf16 LANES=256 CHUNKS=0,4 VEC=0,1
// Softmax of rows. A team of LANES invocations takes a row and keeps it in
// registers, CHUNKS times four items each; CHUNKS=0 reads the row twice, the
// first time with a running maximum.
#include "common/exp_sums.glsl"

#define ARGS T_PTR x; T_PTR y; ROW_ARGS
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_BEGIN
  float top = -INF_F;
  float total = 0.0;
#if CHUNKS
  vec4 v[CHUNKS];
  [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
    uint i = (c * LANES + LANE) * 4;
    v[c] = FETCH4(x, i, n, -INF_F);
    top = max(top, max4(v[c]));
  }
  top = team_max(top);
  [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
    // What lies beyond the row adds nothing, even if the row is all -Inf.
    uint i = (c * LANES + LANE) * 4;
    v[c] = exp4(v[c] - top);
    total += sum4(IN_ROW4(i, n, v[c], 0.0));
  }
  total = team_sum(total);
  float scale = 1.0 / total;
  if (live) {
    [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
      uint i = (c * LANES + LANE) * 4;
      STORE4(y, i, n, v[c] * scale);
    }
  }
#else
  for (uint i = LANE * 4; i < n; i += LANES * 4) {
    vec4 v = FETCH4(x, i, n, -INF_F);
    float next = max(top, max4(v));
    // A row that starts with -Inf has no scale to change yet.
    total = next == -INF_F
        ? (nan4(v) ? NAN_F : total)
        : total * math_exp(top - next) + sum4(exp4(v - next));
    top = next;
  }
  float row_top = team_max(top);
  total = row_top == -INF_F ? NAN_F
      : top == -INF_F       ? total
                            : total * math_exp(top - row_top);
  total = team_sum(total);
  float scale = 1.0 / total;
  if (live) {
    for (uint i = LANE * 4; i < n; i += LANES * 4) {
      vec4 v = FETCH4(x, i, n, -INF_F);
      STORE4(y, i, n, exp4(v - row_top) * scale);
    }
  }
#endif
}
