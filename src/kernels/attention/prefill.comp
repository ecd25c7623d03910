// Tiled attention for many query rows with an online softmax.
//
// A workgroup takes BQ query rows of one head and iterates over tiles of BK
// keys. It computes scores as a small matrix product, SLICE columns of q and k
// at a time through shared memory; LANES invocations per row update the maximum
// and turn scores into weights; then V_ROWS rows of v at a time are
// accumulated. Columns of y are split in groups of 16, one column of each group
// per invocation, or with QUADS in groups of 64, four neighbours of each.
// prefill.h states the shared memory and subgroup size required.
#if QUADS
#define V_ROWS (BK / 4)
#else
#define V_ROWS (BK / 8)
#endif
#define RV ((DV + 15) / 16) // columns per invocation
// The pool holds slices of q and k, then rows of v.
#define V_ITEMS (V_ROWS * RV * 16)
#if (BQ + BK) * 33 > V_ITEMS
#define POOL SLICE_ITEMS
#else
#define POOL V_ITEMS
#endif
#define TAKES_EXACT false
#include "attention/prefill.glsl"
#include "attention/slices.glsl"

layout(local_size_x = WG) in;

#define LANES (WG / BQ) // invocations per row in the softmax
#define SOFT_ROW (gl_LocalInvocationIndex / LANES)
#define SOFT_LANE (gl_LocalInvocationIndex % LANES)
#define S_ROW (BK + 1) // padded against bank conflicts

// The invocation's columns of y, and a loop over rows of v. With QUADS loads of
// shared memory are of four items, and only they are unrolled, as ANV spills
// otherwise.
#if QUADS
#define COLUMN(j) (j) / 4 * 64 + TX * 4 + (j) % 4
#define FOR_V_ROWS                                                            \
  [[dont_unroll]] for (uint r4 = 0; r4 < V_ROWS; r4 += 4)                     \
    [[unroll]] for (uint r = 0; r < 4; ++r)
#define V_ROW (r4 + r)
#else
#define COLUMN(j) (j) * 16 + TX
#define FOR_V_ROWS [[unroll]] for (uint r = 0; r < V_ROWS; ++r)
#define V_ROW r
#endif

shared float scores[BQ * S_ROW];
shared float keep_row[BQ];
shared float sum_row[BQ];

float acc[RQ * RV];
float row_max, row_sum; // of the invocation's softmax row

void score(Tile tile, uint key0, Rows q, Rows k) {
  float s[RQ * RK];
  [[unroll]] for (uint i = 0; i < RQ * RK; ++i) {
    s[i] = 0.0;
  }
  multiply(s, q, k, D, A.scale);
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    uint query = tile.query0 + TY * RQ + i;
    [[unroll]] for (uint j = 0; j < RK; ++j) {
      scores[(TY * RQ + i) * S_ROW + j * 16 + TX] =
          final_score(tile, query, key0 + j * 16 + TX, s[i * RK + j]);
    }
  }
  barrier();
}

// Updates the row's maximum and sum and turns scores into weights.
void make_weights() {
  float m = row_max;
  [[unroll]] for (uint i = 0; i < BK / LANES; ++i) {
    m = max(m, scores[SOFT_ROW * S_ROW + i * LANES + SOFT_LANE]);
  }
  [[unroll]] for (uint o = 1; o < LANES; o *= 2) {
    m = max(m, subgroupShuffleXor(m, o));
  }
  float total = 0.0;
  [[unroll]] for (uint i = 0; i < BK / LANES; ++i) {
    uint at = SOFT_ROW * S_ROW + i * LANES + SOFT_LANE;
    float p = exp2_diff(scores[at], m);
    scores[at] = p;
    total += p;
  }
  [[unroll]] for (uint o = 1; o < LANES; o *= 2) {
    total += subgroupShuffleXor(total, o);
  }
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + total;
  row_max = m;
  if (SOFT_LANE == 0) {
    keep_row[SOFT_ROW] = keep;
  }
  barrier();
}

void accumulate(uint key0, Rows v) {
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    float x = keep_row[TY * RQ + i];
    [[unroll]] for (uint j = 0; j < RV; ++j) {
      acc[i * RV + j] *= x;
    }
  }
  uint tile_keys = min(BK, v.end - key0);
  for (uint r0 = 0; r0 < tile_keys; r0 += V_ROWS) {
    v.first = key0 + r0;
    fetch(0, V_ROWS, DV, RV * 16, v, 0, DV, 1.0);
    barrier();
    FOR_V_ROWS {
      float p[RQ];
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        p[i] = scores[(TY * RQ + i) * S_ROW + r0 + V_ROW];
      }
      [[unroll]] for (uint j = 0; j < RV; ++j) {
        float x = pool[V_ROW * RV * 16 + COLUMN(j)];
        [[unroll]] for (uint i = 0; i < RQ; ++i) {
          acc[i * RV + j] = fma(p[i], x, acc[i * RV + j]);
        }
      }
    }
    barrier();
  }
}

void store_rows(Tile tile) {
  float keep = add_sink(tile.head, row_max, row_sum);
  if (SOFT_LANE == 0) {
    uint query = tile.query0 + SOFT_ROW;
    if (query < A.queries) {
      store_lse(tile.batch, tile.head, query, row_max, row_sum);
    }
    keep_row[SOFT_ROW] = keep;
    sum_row[SOFT_ROW] = row_sum;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    uint r = TY * RQ + i;
    uint query = tile.query0 + r;
    uint64_t row =
        (uint64_t(tile.batch) * A.queries + query) * A.heads + tile.head;
    float total = sum_row[r];
    float factor = keep_row[r];
    [[unroll]] for (uint j = 0; j < RV; ++j) {
      uint d = COLUMN(j);
      if (query < A.queries && d < DV) {
        float x = acc[i * RV + j] * factor;
        store(A.y, row * DV + d, total == 0.0 ? 0.0 : x / total);
      }
    }
  }
}

void attend(Tile tile) {
  uint b = tile.batch;
  Rows q = Rows(
      uint64_t(AT_HEAD(A.q, A.q_strides, b, tile.head)),
      A.q_strides.row,
      tile.query0,
      A.queries);
  Rows k = Rows(
      uint64_t(AT_HEAD(A.k, A.k_strides, b, tile.kv_head)),
      A.k_strides.row,
      0,
      tile.key_end);
  Rows v = Rows(
      uint64_t(AT_HEAD(A.v, A.v_strides, b, tile.kv_head)),
      A.v_strides.row,
      0,
      tile.key_end);
  [[unroll]] for (uint i = 0; i < RQ * RV; ++i) {
    acc[i] = 0.0;
  }
  row_max = ABSENT;
  row_sum = 0.0;
  for (uint key0 = 0; key0 < tile.key_end; key0 += BK) {
    k.first = key0;
    score(tile, key0, q, k);
    make_weights();
    accumulate(key0, v);
  }
  store_rows(tile);
}
