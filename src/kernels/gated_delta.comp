// variants: T=f32,f16,bf16 DK=128 LANES=8,32 GATES=1 VEC=0,1; T=f32 DK=128,64 LANES=8 GATES=64 VEC=0
// The gated delta rule. Row (b, h, d) of the state, DK floats in the registers
// of a team of LANES, goes through the steps:
//   s = s * g;  s = s + k * (v - s . k) * beta;  y = s . q
// with the q and k of head h / repeat. GATES: 1 gate a head, or DK of them.
// Strides are those of batch, step and head (and row, for v); q and k have
// their items side by side. VEC: in aligned fours, and the states too. The new
// state may be the old one.
#extension GL_EXT_control_flow_attributes : enable
#define WG_SIZE 128
#include "common/lanes.glsl"
#include "common/vec4.glsl"

#define ARGS                                                                  \
  T_PTR q; T_PTR k; T_PTR v; T_PTR g; T_PTR beta; Ptr_f32 s; T_PTR y;         \
  Ptr_f32 state; uint64_t rows; int64_t q_s[3]; int64_t k_s[3];               \
  int64_t v_s[4]; int64_t g_s[4]; int64_t beta_s[3];                          \
  uint steps; uint heads; uint repeat; uint dv;
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

TEAM_REDUCE(team_sum, float, lane_add, sums)

#define PACKS (DK / (4 * LANES))

// Item of pack i that this lane holds.
#define ITEM(i) ((i) * 4 * LANES + LANE * 4)
#define AT(PTR, SIZE, p, items) PTR(uint64_t(p) + uint64_t((items) * SIZE))

#if VEC
#define LOAD(p, i) load_vec4(p, i)
#define LOAD_STATE(p, i) Ptr_f32x4(uint64_t(p) + uint64_t(i) * 4).v[0]
#define STORE_STATE(p, i, value)                                              \
  Ptr_f32x4(uint64_t(p) + uint64_t(i) * 4).v[0] = value
#else
#define LOAD(p, i)                                                            \
  vec4(load(p, i), load(p, (i) + 1), load(p, (i) + 2), load(p, (i) + 3))
#define LOAD_STATE(p, i) LOAD(p, i)
#define STORE_STATE(p, i, value)                                              \
  {                                                                           \
    [[unroll]] for (uint j_ = 0; j_ < 4; ++j_) {                              \
      store(p, (i) + j_, (value)[j_]);                                        \
    }                                                                         \
  }
#endif

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
  T_PTR qt = AT(T_PTR, T_SIZE, q, i * A.q_s[1]);
  T_PTR kt = AT(T_PTR, T_SIZE, k, i * A.k_s[1]);
  T_PTR gt = AT(T_PTR, T_SIZE, g, i * A.g_s[1]);
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

  q = AT(T_PTR, T_SIZE, A.q, b * A.q_s[0] + hk * A.q_s[2]);
  k = AT(T_PTR, T_SIZE, A.k, b * A.k_s[0] + hk * A.k_s[2]);
  v = AT(T_PTR, T_SIZE, A.v, b * A.v_s[0] + h * A.v_s[2] + d * A.v_s[3]);
  g = AT(T_PTR, T_SIZE, A.g, b * A.g_s[0] + h * A.g_s[2]);
  beta = AT(T_PTR, T_SIZE, A.beta, b * A.beta_s[0] + h * A.beta_s[2]);
  uint64_t y = (uint64_t(b) * A.steps * A.heads + uint64_t(h)) * A.dv + d;

  vec4 s[PACKS];
  Ptr_f32 old = AT(Ptr_f32, 4, A.s, int64_t(row) * DK);
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = LOAD_STATE(old, ITEM(p));
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
    Ptr_f32 to = AT(Ptr_f32, 4, A.state, int64_t(row) * DK);
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      STORE_STATE(to, ITEM(p), s[p]);
    }
  }
}
