// variants: T=f32,f16,bf16 LAYER=0,1 WEIGHT=1 BIAS=0 LANES=32,256 CHUNKS=2 VEC=0,1; T=f32 LAYER=1 WEIGHT=1 BIAS=1 LANES=128,256 CHUNKS=0 VEC=0,1; T=bf16 LAYER=0 WEIGHT=0 BIAS=0 LANES=128 CHUNKS=0 VEC=1
// RMS norm (LAYER=0) and layer norm of rows, scaled and shifted by optional
// vectors. A team of LANES invocations keeps its row in registers, CHUNKS
// times four items each; CHUNKS=0 reads it again. y may be x itself.
#include "common/math.glsl"
#include "common/rows.glsl"

#if WEIGHT
#define WEIGHT_POINTER T_PTR w;
#else
#define WEIGHT_POINTER
#endif
#if BIAS
#define BIAS_POINTER T_PTR b;
#else
#define BIAS_POINTER
#endif
#define ARGS                                                                  \
  T_PTR x; WEIGHT_POINTER BIAS_POINTER T_PTR y; ROW_ARGS int64_t w_stride;    \
  int64_t b_stride; float eps; float inverse_n;
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sum_scratch)

// Items i..i+3 of a vector along the row; strided ones one by one.
#if VEC
#define VECTOR4(p, stride, i, n) FETCH4(p, i, n, 0.0)
#else
#define VECTOR4(p, stride, i, n)                                              \
  vec4(                                                                       \
      (i) < (n) ? load(p, int64_t(i) * stride) : 0.0,                         \
      (i) + 1 < (n) ? load(p, int64_t((i) + 1) * stride) : 0.0,               \
      (i) + 2 < (n) ? load(p, int64_t((i) + 2) * stride) : 0.0,               \
      (i) + 3 < (n) ? load(p, int64_t((i) + 3) * stride) : 0.0)
#endif

// As the op is defined: the normal value rounds to T before the weight.
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

void main() {
  ROW_BEGIN
  float total = 0.0;
  float mean = 0.0;
#if CHUNKS
  vec4 v[CHUNKS];
  [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
    uint i = (c * LANES + LANE) * 4;
    v[c] = FETCH4(x, i, n, 0.0);
    total += LAYER == 1 ? sum4(v[c]) : dot(v[c], v[c]);
  }
#if LAYER
  mean = team_sum(total) * A.inverse_n;
  total = 0.0;
  [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
    uint i = (c * LANES + LANE) * 4;
    v[c] = IN_ROW4(i, n, v[c] - mean, 0.0);
    total += dot(v[c], v[c]);
  }
#endif
  float scale = inversesqrt(team_sum(total) * A.inverse_n + A.eps);
  if (live) {
    [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
      uint i = (c * LANES + LANE) * 4;
      if (i < n) {
        STORE4(y, i, n, finish(v[c] * scale, i, n));
      }
    }
  }
#else
  for (uint i = LANE * 4; i < n; i += LANES * 4) {
    vec4 v = FETCH4(x, i, n, 0.0);
    total += LAYER == 1 ? sum4(v) : dot(v, v);
  }
#if LAYER
  mean = team_sum(total) * A.inverse_n;
  total = 0.0;
  for (uint i = LANE * 4; i < n; i += LANES * 4) {
    vec4 v = FETCH4(x, i, n, 0.0) - mean;
    v = IN_ROW4(i, n, v, 0.0);
    total += dot(v, v);
  }
#endif
  float scale = inversesqrt(team_sum(total) * A.inverse_n + A.eps);
  if (live) {
    for (uint i = LANE * 4; i < n; i += LANES * 4) {
      vec4 v = FETCH4(x, i, n, 0.0) - mean;
      STORE4(y, i, n, finish(v * scale, i, n));
    }
  }
#endif
}
