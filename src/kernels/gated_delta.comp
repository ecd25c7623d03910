// The gated delta rule. Row (b, h, d) of the state, DK floats in the registers
// of a team of LANES, goes through the steps:
//   s = s * g;  s = s + k * (v - s . k) * beta;  y = s . q
// with the q and k of head h / repeat, whose items lie side by side. The new
// state may be the old one.
#extension GL_EXT_control_flow_attributes : enable
#include "gated_delta.glsl"
#include "gated_delta.h"
#define ARGS_BLOCK GatedDeltaArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

// What a step reads, fetched one step ahead.
struct Step {
  vec4 q[PACKS], k[PACKS];
#if GATES > 1
  vec4 g[PACKS];
#else
  float g;
#endif
  float v, beta;
};

T_PTR q, k, v, g, beta;

Step fetch(uint t) {
  Step f;
  int64_t i = int64_t(t);
  T_PTR qt = MOVED(T, q, i * A.q_s[1]);
  T_PTR kt = MOVED(T, k, i * A.k_s[1]);
  T_PTR gt = MOVED(T, g, i * A.g_s[1]);
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    f.q[p] = LOAD(qt, ITEM(p));
    f.k[p] = LOAD(kt, ITEM(p));
#if GATES > 1
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      f.g[p][j] = load(gt, int64_t(ITEM(p) + j) * A.g_s[3]);
    }
#endif
  }
#if GATES == 1
  f.g = load(gt, 0);
#endif
  f.v = load(v, i * A.v_s[1]);
  f.beta = load(beta, i * A.beta_s[1]);
  return f;
}

void main() {
  uint64_t row = uint64_t(group_index()) * TEAMS + TEAM;
  bool live = row < A.rows;
  row = live ? row : uint64_t(0);
  uint64_t bh = row / A.dv;
  int64_t d = int64_t(row - bh * A.dv);
  int64_t b = int64_t(bh / A.heads);
  int64_t h = int64_t(bh) - b * int64_t(A.heads);
  int64_t hk = int64_t(uint(h) / A.repeat);

  q = MOVED(T, A.q, b * A.q_s[0] + hk * A.q_s[2]);
  k = MOVED(T, A.k, b * A.k_s[0] + hk * A.k_s[2]);
  v = MOVED(T, A.v, b * A.v_s[0] + h * A.v_s[2] + d * A.v_s[3]);
  g = MOVED(T, A.g, b * A.g_s[0] + h * A.g_s[2]);
  beta = MOVED(T, A.beta, b * A.beta_s[0] + h * A.beta_s[2]);
  uint64_t y = (uint64_t(b) * A.steps * A.heads + uint64_t(h)) * A.dv + d;

  vec4 s[PACKS];
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = LOAD_STATE(A.s, row * DK + ITEM(p));
  }
  if (A.steps > 0) {
    Step next = fetch(0);
    for (uint t = 0; t < A.steps; ++t) {
      Step now = next;
      next = fetch(min(t + 1, A.steps - 1));
      vec4 sk = vec4(0.0);
      [[unroll]] for (uint p = 0; p < PACKS; ++p) {
#if GATES > 1
        s[p] *= now.g[p];
#else
        s[p] *= now.g;
#endif
        sk = fma(s[p], now.k[p], sk);
      }
      float delta = (now.v - team_sum(sum4(sk))) * now.beta;
      vec4 sq = vec4(0.0);
      [[unroll]] for (uint p = 0; p < PACKS; ++p) {
        s[p] = fma(now.k[p], vec4(delta), s[p]);
        sq = fma(s[p], now.q[p], sq);
      }
      float out_t = team_sum(sum4(sq));
      if (live && LANE == 0) {
        store(A.y, y + uint64_t(t) * A.heads * A.dv, out_t);
      }
    }
  }
  if (live) {
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      STORE_STATE(A.state, row * DK + ITEM(p), s[p]);
    }
  }
}
