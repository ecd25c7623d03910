// Softmax of rows. A team of LANES invocations keeps a row in registers, CHUNKS
// times four items each; CHUNKS=0 reads the row twice, first with a running
// maximum (Milakov and Gimelshein, Online normalizer calculation for softmax,
// 2018).
#include "common/softmax_row.glsl"
#define ARGS_BLOCK SoftmaxArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  ROW_BEGIN
#if CHUNKS
  vec4 v[CHUNKS];
  EACH4 {
    v[c] = FETCH4(x, i, n, -INF_F);
  }
  float scale = softmax_factor(v, n);
  if (live) {
    EACH4 {
      STORE4(y, i, n, v[c] * scale);
    }
  }
#else
  float top;
  float total = team_exp_sum(x, 0, n, top);
  float scale = abs(top) == INF_F ? NAN_F : 1.0 / total;
  if (live) {
    EACH4 {
      STORE4(y, i, n, exp4(FETCH4(x, i, n, -INF_F) - top) * scale);
    }
  }
#endif
}
