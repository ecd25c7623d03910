// Gated delta rule (Yang et al., Gated Delta Networks, 2024). Row (b, h, d) of
// the state, DK floats in the registers of a team of LANES, takes each step:
//   s = s * g;  s = s + k * (v - s . k) * beta;  y = s . q
// with q and k of head h / repeat. The new state may alias the old one.
#include "gated_delta.glsl"
#include "gated_delta.h"
#define ARGS_BLOCK GatedDeltaArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

// Operands of one step, prefetched one step ahead.
struct Step {
  RAW4 q[PACKS], k[PACKS];
#if GATES > 1
  vec4 g[PACKS];
#else
  float g;
#endif
  float v, beta;
};

// Addresses of the next step to fetch.
T_PTR q, k, v, beta;
G_PTR g;

Step fetch() {
  Step f;
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    f.q[p] = LOAD(q, ITEM(p));
    f.k[p] = LOAD(k, ITEM(p));
#if GATES > 1
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      f.g[p][j] = load(g, int64_t(ITEM(p) + j) * A.g_s[3]);
    }
#endif
  }
#if GATES == 1
  f.g = load(g, 0);
#endif
  f.v = load(v, 0);
  f.beta = load(beta, 0);
  return f;
}

void advance() {
  q = MOVED(T, q, A.q_s[1]);
  k = MOVED(T, k, A.k_s[1]);
  v = MOVED(T, v, A.v_s[1]);
  g = MOVED(G, g, A.g_s[1]);
  beta = MOVED(T, beta, A.beta_s[1]);
}

vec4 s[PACKS];

// Updates the state by one step and returns the row's output.
float step(Step now) {
  vec4 sk = vec4(0.0);
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
#if GATES > 1
    s[p] *= now.g[p];
#else
    s[p] *= now.g;
#endif
    sk = fma(s[p], ITEMS(now.k[p]), sk);
  }
  float delta = (now.v - team_sum(sum4(sk))) * now.beta;
  vec4 sq = vec4(0.0);
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = fma(ITEMS(now.k[p]), vec4(delta), s[p]);
    sq = fma(s[p], ITEMS(now.q[p]), sq);
  }
  return team_sum(sum4(sq));
}

#if COUNTED
#define BATCH(strides) (b * int64_t(steps) * strides[1])
#else
#define BATCH(strides) (b * strides[0])
#endif

void main() {
  uint64_t row = uint64_t(group_index()) * TEAMS + TEAM;
  bool live = row < A.rows;
  row = live ? row : uint64_t(0);
  uint64_t bh = row / A.dv;
  int64_t d = int64_t(row - bh * A.dv);
  int64_t b = int64_t(bh / A.heads);
  int64_t h = int64_t(bh) - b * int64_t(A.heads);
  int64_t hk = int64_t(uint(h) / A.repeat);
  uint lane = LANE * 4;
#if COUNTED
  uint steps = uint(max(load(A.count, 0), 0));
#else
  uint steps = A.steps;
#endif

  q = MOVED(T, A.q, BATCH(A.q_s) + hk * A.q_s[2] + lane);
  k = MOVED(T, A.k, BATCH(A.k_s) + hk * A.k_s[2] + lane);
  v = MOVED(T, A.v, BATCH(A.v_s) + h * A.v_s[2] + d * A.v_s[3]);
  g = MOVED(G, A.g, BATCH(A.g_s) + h * A.g_s[2]);
#if GATES > 1
  g = MOVED(G, g, int64_t(lane) * A.g_s[3]);
#endif
  beta = MOVED(T, A.beta, BATCH(A.beta_s) + h * A.beta_s[2]);
  int64_t y_step = int64_t(A.heads) * A.dv;
  T_PTR y = MOVED(T, A.y, b * int64_t(steps) * y_step + h * int64_t(A.dv) + d);

  uint64_t at = row * DK + lane;
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = LOAD_STATE(A.s, at + ITEM(p));
  }
  if (steps > 0) {
    Step next = fetch();
    for (uint t = 1; t <= steps; ++t) {
      Step now = next;
      if (t < steps) {
        advance();
        next = fetch();
      }
      float out_t = step(now);
      if (live && LANE == 0) {
        store(y, 0, out_t);
      }
      y = MOVED(T, y, y_step);
    }
  }
  if (live) {
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      STORE_STATE(A.state, at + ITEM(p), s[p]);
    }
  }
}
