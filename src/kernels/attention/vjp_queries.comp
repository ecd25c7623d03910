// dq = ds k, with ds as in vjp_keys.comp and the same requirements. A subgroup
// takes 16 queries and keeps their rows of q and dO in registers; all subgroups
// share a step's keys and values while the next ones are loaded.
#define OF_KEYS 0
#define BQ (16 * SUBGROUPS)
#define NK (BK / 16)
#define TILE (BK * (D / 8 + 1)) // k or v
#define OWN (BQ * (D / 8 + 1)) // q, then dO
#define STAGED BIGGER(4 * TILE, OWN)
#include "attention/vjp_fragments.glsl"

MATRIX_A q[ND], cotan[ND];
MATRIX_C dp[NK];
float lse[LANE_ROWS], delta[LANE_ROWS]; // of the lane's rows

// Loads the subgroup's rows of q or dO into matrices, through shared memory.
#define LOAD_OWN(matrices, x, strides)                                        \
  {                                                                           \
    uvec4 next[PIECES(BQ, D)];                                                \
    FETCH_ROWS(                                                               \
        next, BQ, D, AT_HEAD(x, strides, batch, head), strides.row, q0,       \
        queries)                                                              \
    barrier();                                                                \
    STAGE_ROWS(next, BQ, D, 0)                                                \
    barrier();                                                                \
    UNROLL for (uint d = 0; d < ND; ++d) {                                    \
      LOAD_A(matrices[d], (query0 - q0) * PITCH + d * 2, PITCH);                     \
    }                                                                         \
  }

// s = q k^T and dp = dO v^T, for the rows of k and v from `at` on.
void make_scores(uint at) {
  UNROLL for (uint j = 0; j < NK; ++j) {
    s[j] = MATRIX_ZERO;
    dp[j] = MATRIX_ZERO;
  }
  UNROLL for (uint d = 0; d < ND; ++d) {
    UNROLL for (uint j = 0; j < NK; ++j) {
      MATRIX_B b;
      LOAD_B_TRANSPOSED(b, at + j * 16 * PITCH + d * 2, PITCH);
      MULTIPLY(s[j], q[d], b, s[j]);
      MATRIX_B c;
      LOAD_B_TRANSPOSED(c, at + TILE + j * 16 * PITCH + d * 2, PITCH);
      MULTIPLY(dp[j], cotan[d], c, dp[j]);
    }
  }
}

// Turns s into ds.
void differentiate_scores(
    uint batch,
    uint head,
    uint query0,
    uint key0,
    bool plain) {
  UNROLL for (uint j = 0; j < NK; ++j) {
    if (plain) {
      UNROLL for (uint e = 0; e < 8; ++e) {
        s[j][e] = plain_weight(s[j][e], lse[e / 4]) *
            fma(dp[j][e], scale, -delta[e / 4]);
      }
    } else {
      UNROLL for (uint e = 0; e < 8; ++e) {
        float p = signed_weight(
            batch, head, query0 + FRAGMENT_ROW(e),
            key0 + j * 16 + FRAGMENT_COLUMN(e), s[j][e],
            lse[e / 4]);
        s[j][e] = has_gradient(p)
            ? p * fma(dp[j][e], scale, -delta[e / 4])
            : 0.0;
      }
    }
  }
}

void differentiate(uint group) {
  take_arguments();
  // Late queries see the most keys, so their tiles start first.
  uint others = A.heads * A.batches;
  uint q0 = (A.tiles - 1 - group / others) * BQ;
  uint head = group % others % A.heads;
  uint batch = group % others / A.heads;
  uint kv_head = head / (A.heads / A.kv_heads);
  uint query0 = q0 + SUBGROUP * 16;

  LOAD_OWN(q, A.q, A.q_strides)
  LOAD_OWN(cotan, A.cotan, A.cotan_strides)
  uint64_t row0 = (uint64_t(batch) * A.heads + head) * queries;
  UNROLL for (uint r = 0; r < LANE_ROWS; ++r) {
    uint query = min(query0 + FRAGMENT_ROW(ELEMENT(r, 0)), queries - 1);
    lse[r] = in_base_2(load(A.lse, row0 + query));
    delta[r] = load(A.delta, row0 + query) * scale;
  }
  UNROLL for (uint d = 0; d < ND; ++d) {
    acc[d] = MATRIX_ZERO;
  }

  // End of the visible keys: for any query of the workgroup, for any of the
  // subgroup, and for all of the subgroup.
  uint key_end = keys;
  uint seen_end = query0 < queries ? keys : 0;
  uint plain_end = MASK != 0 ? 0 : keys;
#if CAUSAL
  // Rows without visible keys have no gradient.
  int later = int(keys) - int(queries);
  key_end = min(key_end, uint(max(int(q0 + BQ) + later, 0)));
  seen_end = min(seen_end, uint(max(int(query0 + 16) + later, 0)));
  plain_end = min(plain_end, uint(max(int(query0 + 1) + later, 0)));
#endif

  T_PTR k = AT_HEAD(A.k, A.k_strides, batch, kv_head);
  T_PTR v = AT_HEAD(A.v, A.v_strides, batch, kv_head);
  int64_t k_row = A.k_strides.row, v_row = A.v_strides.row;
  uint turn = 0;
  uvec4 next_k[PIECES(BK, D)], next_v[PIECES(BK, D)];
#define FETCH_STEP(from)                                                      \
  FETCH_ROWS(next_k, BK, D, k, k_row, from, key_end)                          \
  FETCH_ROWS(next_v, BK, D, v, v_row, from, key_end)
#define STAGE_STEP(turn)                                                      \
  STAGE_ROWS(next_k, BK, D, (turn) * 2 * TILE)                                \
  STAGE_ROWS(next_v, BK, D, (turn) * 2 * TILE + TILE)
  FETCH_STEP(0)
  barrier(); // dO has been read
  STAGE_STEP(0)
  barrier();

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    FETCH_STEP(key0 + BK)
    bool live = EVERY_SUBGROUP(key0 < seen_end); // uniform in the subgroup
    uint at = turn * 2 * TILE;
    if (live) {
      make_scores(at);
      differentiate_scores(
          batch, head, query0, key0, key0 + BK <= plain_end);
      add_products(at);
    }
    STAGE_STEP(1 - turn)
    barrier(); // the next step is visible, this one is no longer read
    turn = 1 - turn;
  }
  store_gradient(uint64_t(A.dq) + row0 * (D * 2), query0, queries);
}

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.tiles * A.heads * A.batches) {
    differentiate(group);
  }
}
