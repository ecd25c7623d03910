// dk = ds^T q and dv = p^T dO, summed over the heads that share a KV head,
// where p = softmax(scale q k^T) is recomputed from lse and ds = scale p (dO
// v^T - delta). This is the backward pass of FlashAttention-2 (Dao, 2023)
// without dq: vjp_queries.comp recomputes p and ds for it, which avoids sums
// across workgroups. Needs cooperative matrices whose element layout is known
// from runtime/probe.cpp, 16-bit items, rows aligned to 16 bytes and subgroups
// of 32.
//
// Scores are computed transposed, so that weights in registers are the operand
// of p^T dO. Two subgroups share 16 keys, because sums of both products exceed
// the registers: one computes k q^T, p and p^T dO, the other v dO^T, ds and
// ds^T q. Each keeps its rows of k or v. A step's q and dO are read from shared
// memory while the next ones are loaded.
#define OF_KEYS 1
#define PAIRS (SUBGROUPS / 2)
#define BK (16 * PAIRS)
#define NQ (BQ / 16)
#define TILE (BQ * (D / 8 + 1)) // q or dO
#define OWN (BK * (D / 8 + 1)) // k or v
#define STAGED (2 * BIGGER(2 * TILE, OWN))
#include "attention/vjp_fragments.glsl"

shared uvec4 weights[PAIRS * NQ * 2 * SG]; // p of all pairs of subgroups
shared float row_stats[4 * BQ]; // lse and delta of two tiles

MATRIX_A own[ND]; // k or v
// s holds k q^T or v dO^T, then p^T or ds^T.

struct Step {
  uint head, query0;
};

// lse in base 2, or delta times scale, of the invocation's row.
float fetch_stat(uint batch, Step next, uint end) {
  uint i = gl_LocalInvocationIndex;
  uint query = next.query0 + i % BQ;
  float y = 0.0;
  if (i < 2 * BQ && query < end) {
    uint64_t row = (uint64_t(batch) * A.heads + next.head) * end + query;
    y = i < BQ ? in_base_2(load(A.lse, row)) : load(A.delta, row) * scale;
  }
  return y;
}

// s = own b^T, for the rows of b from `at` on.
void make_scores(uint at) {
  UNROLL for (uint j = 0; j < NQ; ++j) {
    s[j] = MATRIX_ZERO;
  }
  UNROLL for (uint d = 0; d < ND; ++d) {
    UNROLL for (uint j = 0; j < NQ; ++j) {
      MATRIX_B b;
      LOAD_B_TRANSPOSED(b, at + j * 16 * PITCH + d * 2, PITCH);
      MULTIPLY(s[j], own[d], b, s[j]);
    }
  }
}

// Values of row_stats from `at` on for the columns of the elements.
#define EACH_COLUMN(values, at)                                               \
  float values[8];                                                            \
  UNROLL for (uint e = 0; e < 8; ++e) {                                       \
    if (e < 4) {                                                \
      values[e] = row_stats[(at) + FRAGMENT_COLUMN(e)];                       \
    }                                                                         \
  }

// Turns scores into weights and passes them to the pair's other subgroup.
void make_weights(uint batch, Step step, uint key0, uint stats, bool plain) {
  uint corner = SUBGROUP % PAIRS * (NQ * 2 * SG) + LANE;
  UNROLL for (uint j = 0; j < NQ; ++j) {
    EACH_COLUMN(lse, stats + j * 16)
    if (plain) {
      UNROLL for (uint e = 0; e < 8; ++e) {
        s[j][e] = plain_weight(s[j][e], lse[e % 4]);
      }
    } else {
      UNROLL for (uint e = 0; e < 8; ++e) {
        s[j][e] = signed_weight(
            batch, step.head, step.query0 + j * 16 + FRAGMENT_COLUMN(e),
            key0 + FRAGMENT_ROW(e), s[j][e], lse[e % 4]);
      }
    }
    UNROLL for (uint h = 0; h < 2; ++h) {
      weights[corner + (j * 2 + h) * SG] = floatBitsToUint(vec4(
          s[j][4 * h], s[j][4 * h + 1], s[j][4 * h + 2], s[j][4 * h + 3]));
    }
    if (!plain) {
      UNROLL for (uint e = 0; e < 8; ++e) {
        s[j][e] = abs(s[j][e]);
      }
    }
  }
}

// Turns gradients of weights into gradients of scores.
void differentiate_scores(uint stats, bool plain) {
  uint corner = SUBGROUP % PAIRS * (NQ * 2 * SG) + LANE;
  UNROLL for (uint j = 0; j < NQ; ++j) {
    EACH_COLUMN(delta, stats + j * 16)
    UNROLL for (uint h = 0; h < 2; ++h) {
      vec4 p = uintBitsToFloat(weights[corner + (j * 2 + h) * SG]);
      UNROLL for (uint i = 0; i < 4; ++i) {
        uint e = 4 * h + i;
        float ds = p[i] * fma(s[j][e], scale, -delta[e % 4]);
        s[j][e] = plain || has_gradient(p[i]) ? ds : 0.0;
      }
    }
  }
}

// Loads the workgroup's k and v to shared memory and keeps the subgroup's rows,
// from `at` on, in registers.
void load_own(uint batch, uint kv_head, uint k0, uint at) {
  uvec4 next_k[PIECES(BK, D)], next_v[PIECES(BK, D)];
  T_PTR k = AT_HEAD(A.k, A.k_strides, batch, kv_head);
  T_PTR v = AT_HEAD(A.v, A.v_strides, batch, kv_head);
  FETCH_ROWS(next_k, BK, D, k, A.k_strides.row, k0, keys)
  FETCH_ROWS(next_v, BK, D, v, A.v_strides.row, k0, keys)
  STAGE_ROWS(next_k, BK, D, 0)
  STAGE_ROWS(next_v, BK, D, OWN)
  barrier();
  UNROLL for (uint d = 0; d < ND; ++d) {
    LOAD_A(own[d], at + d * 2, PITCH);
    acc[d] = MATRIX_ZERO;
  }
}

void differentiate(uint group) {
  take_arguments();
  // Early keys are seen by the most queries, so their tiles start first.
  uint others = A.kv_heads * A.batches;
  uint k0 = group / others * BK;
  uint kv_head = group % others % A.kv_heads;
  uint batch = group % others / A.kv_heads;
  uint role = SUBGROUP / PAIRS; // 0: dv, 1: dk
  uint key0 = k0 + SUBGROUP % PAIRS * 16;

  load_own(batch, kv_head, k0, role * OWN + (key0 - k0) * PITCH);
  uint first = 0; // first query that sees any of the keys
  // The first query that sees every key.
  uint plain_from = MASK != 0 ? queries : 0;
#if CAUSAL
  // With fewer keys than queries the first queries see none and weigh all keys
  // equally.
  if (keys >= queries) {
    uint later = keys - queries;
    first = k0 > later ? k0 - later : 0;
    plain_from = max(plain_from, k0 + BK > later ? k0 + BK - 1 - later : 0);
  } else {
    plain_from = queries;
  }
#endif

  Step step = Step(kv_head * (A.heads / A.kv_heads), first);
  uint steps = first < queries ? (queries - first + BQ - 1) / BQ : 0;
  steps *= A.heads / A.kv_heads;
  T_PTR q = AT_HEAD(A.q, A.q_strides, batch, step.head);
  T_PTR cotan = AT_HEAD(A.cotan, A.cotan_strides, batch, step.head);
  int64_t q_row = A.q_strides.row, cotan_row = A.cotan_strides.row;
  uint turn = 0;
  uvec4 next_q[PIECES(BQ, D)], next_c[PIECES(BQ, D)];
#define FETCH_STEP(step, end)                                                 \
  FETCH_ROWS(next_q, BQ, D, q, q_row, step.query0, end)                       \
  FETCH_ROWS(next_c, BQ, D, cotan, cotan_row, step.query0, end)               \
  float next_stat = fetch_stat(batch, step, end);
#define STAGE_STEP(turn)                                                      \
  STAGE_ROWS(next_q, BQ, D, (turn) * 2 * TILE)                                \
  STAGE_ROWS(next_c, BQ, D, (turn) * 2 * TILE + TILE)                         \
  if (gl_LocalInvocationIndex < 2 * BQ) {                                     \
    row_stats[(turn) * 2 * BQ + gl_LocalInvocationIndex] = next_stat;         \
  }
  {
    uint end = steps != 0 ? queries : 0;
    FETCH_STEP(step, end)
    barrier(); // k and v have been read
    STAGE_STEP(0)
  }
  barrier();

  for (uint n = 1; n <= steps; ++n) {
    Step next = Step(step.head, step.query0 + BQ);
    if (next.query0 >= queries) {
      next = Step(step.head + 1, first);
      q = AT_HEAD(A.q, A.q_strides, batch, next.head);
      cotan = AT_HEAD(A.cotan, A.cotan_strides, batch, next.head);
    }
    uint end = n < steps ? queries : 0;
    FETCH_STEP(next, end)
    uint at = turn * 2 * TILE, stats = (turn * 2 + role) * BQ;
    bool plain = step.query0 >= plain_from && step.query0 + BQ <= queries;
    make_scores(at + role * TILE);
    if (role == 0) {
      make_weights(batch, step, key0, stats, plain);
    }
    barrier(); // weights are visible, the other buffer is no longer read
    STAGE_STEP(1 - turn)
    if (role == 1) {
      differentiate_scores(stats, plain);
    }
    add_products(at + (1 - role) * TILE);
    barrier(); // the next step is visible, weights are no longer read
    turn = 1 - turn;
    step = next;
  }

  uint64_t to = role == 0 ? uint64_t(A.dv) : uint64_t(A.dk);
  to += (uint64_t(batch) * A.kv_heads + kv_head) * keys * (D * 2);
  store_gradient(to, key0, keys);
}

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.tiles * A.kv_heads * A.batches) {
    differentiate(group);
  }
}
