// Steps of Bluestein's algorithm (IEEE Trans. Audio Electroacoustics 18, 1970)
// for lines of `extent` items: a convolution of `wide` items with w_j = exp(i
// pi j^2 / extent).
//   Spread    y[line][j] = x_j / w_j, zeros from `extent` on
//   Chirp     y[j] = w_j, and w_{wide - j} from the other end
//   Product   y[line][j] *= x[j]
//   Gathered  y_k = scale * x[line][k] / w_k
// x of Spread and y of Gathered have the layout of fft.comp, with items `inner`
// apart. The inverse uses conjugates of w.
#include "common/types.glsl"
#include "fft/unit_root.glsl"

#define Spread 0
#define Chirp 1
#define Product 2
#define Gathered 3
#include "fft/fft.h"
#define ARGS_BLOCK ChirpArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

// 1 / w_j.
vec2 chirp(uint j) {
  uint64_t twice = 2ul * uint64_t(A.extent);
  vec2 w = unit_root(uint64_t(j) * uint64_t(j) % twice, twice);
  return vec2(w.x, A.inverse != 0u ? -w.y : w.y);
}

void main() {
  uint64_t at = thread_index64();
  if (at < A.size) {
#if STEP == Spread
    uint64_t line = at / A.wide;
    uint j = uint(at - line * A.wide);
    vec2 v = vec2(0.0);
    if (j < A.extent) {
      bool mirrored = j >= A.held;
      uint64_t outer = line / A.inner;
      uint64_t from = outer * A.held + (mirrored ? A.extent - j : j);
      v = to_c64(load(A.x, from * A.inner + (line - outer * A.inner)));
      v.y = mirrored ? -v.y : v.y;
      v = times(v, chirp(j));
    }
    store(A.y, at, v);
#elif STEP == Chirp
    uint j = uint(at);
    vec2 v = vec2(0.0);
    if (j < A.extent) {
      v = chirp(j);
    } else if (A.wide - j < A.extent) {
      v = chirp(A.wide - j);
    }
    store(A.y, at, vec2(v.x, -v.y));
#elif STEP == Product
    store(A.y, at, times(load(A.y, at), load(A.x, at % A.wide)));
#else
    uint64_t rest = at / A.inner;
    uint64_t i = at - rest * A.inner;
    uint64_t outer = rest / A.held;
    uint k = uint(rest - outer * A.held);
    uint64_t line = outer * A.inner + i;
    vec2 v = times(load(A.x, line * A.wide + k), chirp(k)) * A.scale;
    store(A.y, at, U_CAST(v));
#endif
  }
}
