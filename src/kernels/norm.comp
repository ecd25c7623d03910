// RMS norm (LAYER=0) and layer norm of rows, with optional weight and bias. A
// team of LANES invocations keeps its row in registers, CHUNKS times four items
// each; CHUNKS=0 rereads it. y may alias x.
#ifdef T_IS_bf16
#define NUMBERS_FIRST (CHUNKS > 0)
#endif
#include "common/math.glsl"
#include "common/rms.glsl"
#include "common/rows.glsl"
#define ARGS_BLOCK NormArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)

// The op rounds the normalized value to T before it applies the weight.
vec4 finish(vec4 v, uint i, uint n) {
#if WEIGHT || BIAS
  v = ROUND4_TO_T(v);
#endif
#if WEIGHT && BIAS
  v = ROUND4_TO_T(v * VECTOR4(A.w, A.w_stride, i, n));
#elif WEIGHT
  v = v * VECTOR4(A.w, A.w_stride, i, n);
#endif
#if BIAS
  v = v + VECTOR4(A.b, A.b_stride, i, n);
#endif
  return v;
}

#if CHUNKS
#define X held[c]
#else
#define X FETCH4(x, i, n, 0.0)
#endif

void main() {
  ROW_BEGIN
#if CHUNKS
  vec4 held[CHUNKS];
  EACH4 {
    held[c] = FETCH4(x, i, n, 0.0);
  }
#endif
  float total = 0.0;
#if LAYER
  EACH4 {
    total += sum4(X);
  }
  float mean = team_sum(total) * A.inverse_n;
  total = 0.0;
  EACH4 {
    vec4 v = IN_ROW4(i, n, X - mean, 0.0);
    total += dot(v, v);
  }
#else
  const float mean = 0.0;
  EACH4 {
    total = add_squares(total, X);
  }
#endif
  float scale = rms_factor(team_sum(total), A.inverse_n, A.eps);
  if (live) {
#if NUMBERS_FIRST
    numbers_only = true;
#endif
    EACH4 {
      if (i < n) {
        STORE4(y, i, n, finish((X - mean) * scale, i, n));
      }
    }
#if NUMBERS_FIRST
    numbers_only = false;
    if (is_nan(numbers_seen)) {
      // Not unrolled: llvmpipe executes both sides of a branch but can skip a
      // loop.
      [[dont_unroll]] for (uint c = 0; c < CHUNKS; ++c) {
        uint i = (c * LANES + LANE) * 4;
        vec4 v = held[0];
        [[unroll]] for (uint k = 1; k < CHUNKS; ++k) {
          v = c == k ? held[k] : v;
        }
        if (i < n) {
          STORE4(y, i, n, finish((v - mean) * scale, i, n));
        }
      }
    }
#endif
  }
}
