// Gradients of RMS norm (LAYER=0) and layer norm. A workgroup takes
// rows_per_group rows. It writes gx of each, and the sum of the weight's
// gradient over them to row `group` of gw in float32 (the host adds those
// rows). An invocation keeps CHUNKS times four items of a row in registers;
// CHUNKS=0 takes one row per workgroup and rereads it. gx may alias x or g.
#include "common/math.glsl"
#include "common/rows.glsl"
#define ARGS_BLOCK NormVjpArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, vec2, lane_add2, sum_scratch)

vec4 weight4(uint i, uint n) {
#if WEIGHT
  return VECTOR4(A.w, A.w_stride, i, n);
#else
  return vec4(1.0);
#endif
}

void store_gw(uint64_t group, uint i, uint n, vec4 v) {
#if WEIGHT
  for (uint k = 0; k < 4; ++k) {
    if (i + k < n) {
      store(A.gw, group * n + i + k, v[k]);
    }
  }
#endif
}

#if CHUNKS
#define X x[c]
#define G g[c]
#else
#define X FETCH4(x_row, i, n, 0.0)
#define G FETCH4(g_row, i, n, 0.0)
#endif

void main() {
  uint n = A.n;
  uint64_t group = uint64_t(group_index());
  uint64_t first = group * A.rows_per_group;
  uint64_t last = min(first + A.rows_per_group, A.rows);
#if CHUNKS
  vec4 x[CHUNKS], g[CHUNKS], gw[CHUNKS];
  EACH4 {
    gw[c] = vec4(0.0);
  }
#endif
  for (uint64_t row = first; row < last; ++row) {
    T_PTR x_row = MOVED(T, A.x, row * n);
    T_PTR g_row = MOVED(T, A.g, row * n);
    T_PTR gx_row = MOVED(T, A.gx, row * n);
    vec2 sums = vec2(0.0);
    float mean = 0.0, mean_wg = 0.0;
#if CHUNKS
    EACH4 {
      x[c] = FETCH4(x_row, i, n, 0.0);
      g[c] = FETCH4(g_row, i, n, 0.0);
    }
#endif
#if LAYER
    EACH4 {
      sums += vec2(sum4(X), sum4(G * weight4(i, n)));
    }
    sums = team_sum(sums) * A.inverse_n;
    mean = sums.x;
    mean_wg = sums.y;
    sums = vec2(0.0);
#endif
    EACH4 {
      vec4 xc = IN_ROW4(i, n, X - mean, 0.0);
      sums += vec2(dot(xc, xc), dot(xc, G * weight4(i, n)));
    }
    sums = team_sum(sums) * A.inverse_n;
    float scale = inversesqrt(sums.x + A.eps);
    float slope = sums.y * scale * scale;
    EACH4 {
      vec4 xc = X - mean;
      vec4 gi = G;
      vec4 wg = gi * weight4(i, n);
#if CHUNKS
      gw[c] += gi * xc * scale;
#else
      store_gw(group, i, n, gi * xc * scale);
#endif
      vec4 gx = ((wg - mean_wg) - xc * slope) * scale;
      STORE4(gx_row, i, n, gx);
    }
  }
#if CHUNKS
  if (first < A.rows) {
    EACH4 {
      store_gw(group, i, n, gw[c]);
    }
  }
#endif
}
