// Backward pass of the gated delta rule (gated_delta.comp), one team per row.
// With a = s g, p = a . k, delta = (v - p) beta, s' = a + delta k, y = s' . q:
//   ds' += dy q;  ddelta = ds' . k;  dv = beta ddelta;
//   da = ds' - dv k;  ds = da g
// The states before each step are recomputed from the first and kept together
// with ds', v - p and ddelta, for gated_delta_sums.comp.
#include "gated_delta.glsl"

#include "gated_delta_vjp.h"
#define ARGS_BLOCK GatedDeltaVjpArgs
#include "common/args.glsl"

layout(local_size_x = WG_SIZE) in;

void main() {
  uint64_t row = uint64_t(group_index()) * TEAMS + TEAM;
  bool live = row < A.rows;
  row = live ? row : uint64_t(0);
  uint64_t bh = row / A.dv_items;
  uint64_t d = row - bh * A.dv_items;
  uint64_t b = bh / A.heads;
  uint h = uint(bh - b * A.heads);
  uint64_t hk = uint64_t(h / A.repeat);
  uint64_t key_heads = uint64_t(A.heads / A.repeat);

// Offsets of pack p in a row, of step t in arrays by value head and by key
// head.
#define AT(p) (ITEM(p) + LANE * 4)
#define AT_STEP(t) ((b * A.steps + (t)) * A.heads + h)
#define AT_KEY(t) (((b * A.steps + (t)) * key_heads + hk) * DK)
#if GATES > 1
#define GATE(t, p) ITEMS(LOAD(A.g, AT_STEP(t) * DK + AT(p)))
#else
#define GATE(t, p) load(A.g, AT_STEP(t))
#endif
  vec4 s[PACKS];
  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = LOAD_STATE(A.s, row * DK + AT(p));
  }
  for (uint i = 0; i < A.count; ++i) {
    uint64_t t = uint64_t(A.first + i);
    uint64_t at = (uint64_t(i) * A.rows + row) * DK;
    vec4 k[PACKS];
    vec4 sk = vec4(0.0);
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      k[p] = ITEMS(LOAD(A.k, AT_KEY(t) + AT(p)));
      if (live) {
        STORE_STATE(A.states, at + AT(p), s[p]);
      }
      s[p] *= GATE(t, p);
      sk = fma(s[p], k[p], sk);
    }
    float error = load(A.v, AT_STEP(t) * A.dv_items + d) - team_sum(sum4(sk));
    float delta = error * load(A.beta, AT_STEP(t));
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      s[p] = fma(k[p], vec4(delta), s[p]);
    }
    if (live && LANE == 0) {
      store(A.errors, (uint64_t(i) * A.rows + row) * 2, error);
    }
  }

  [[unroll]] for (uint p = 0; p < PACKS; ++p) {
    s[p] = LOAD_STATE(A.ds, row * DK + AT(p));
  }
  for (uint later = 0; later < A.count; ++later) {
    uint i = A.count - 1 - later;
    uint64_t t = uint64_t(A.first + i);
    uint64_t at = (uint64_t(i) * A.rows + row) * DK;
    float dy = load(A.cotan, AT_STEP(t) * A.dv_items + d);
    vec4 k[PACKS];
    vec4 sk = vec4(0.0);
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      k[p] = ITEMS(LOAD(A.k, AT_KEY(t) + AT(p)));
      s[p] = fma(ITEMS(LOAD(A.q, AT_KEY(t) + AT(p))), vec4(dy), s[p]);
      sk = fma(s[p], k[p], sk);
      if (live) {
        STORE_STATE(A.grads, at + AT(p), s[p]);
      }
    }
    float ddelta = team_sum(sum4(sk));
    float dv = ddelta * load(A.beta, AT_STEP(t));
    if (live && LANE == 0) {
      store(A.errors, (uint64_t(i) * A.rows + row) * 2 + 1, ddelta);
      store(A.dv, AT_STEP(t) * A.dv_items + d, dv);
    }
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      s[p] = fma(k[p], vec4(-dv), s[p]) * GATE(t, p);
    }
  }
  if (live) {
    [[unroll]] for (uint p = 0; p < PACKS; ++p) {
      STORE_STATE(A.ds, row * DK + AT(p), s[p]);
    }
  }
}
