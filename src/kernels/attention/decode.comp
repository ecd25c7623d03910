// Attention for few query rows, K and V read once, in place.
//
// A workgroup takes ROWS query rows that share a KV head (the heads of a GQA
// group, and the queries) and a range of keys. TPK neighbouring invocations, a
// cluster, handle KU keys at a time: each holds a slice of q, k and v. Their
// sums of products, ROWS * KU of them, are reduced and scattered over the
// cluster at once, so that a lane has few scores, of one row, and does the
// online softmax of these alone; weights go around by shuffles. The next keys
// are loaded into k when its products are done, and likewise v: both are in
// flight during the other half of the work.
// Clusters are merged by shuffles, then subgroups through shared memory. Where
// several workgroups share the keys they write parts; with PARTS_JOINED the one
// that comes last joins them, and nobody waits.
// For lack of registers q may be in shared memory (SHARED_Q), and each piece of k
// and v loaded when it is used (PIECES).
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "attention/decode.h"
#define ARGS_BLOCK DecodeArgs
#include "common/args.glsl"
#define HEADS (A.gqa * A.kv_heads)
#include "attention/mask.glsl"
#include "attention/raw.glsl"
#include "attention/join.glsl"

layout(local_size_x = WG) in;

#define CHUNKS ((D / E + TPK - 1) / TPK)
#define CHUNKS_V ((DV / E + TPK - 1) / TPK)
#define CLUSTERS (WG / TPK)
#define STEPS (E / STEP)

// Of ROWS * KU scores a cluster's lanes have SCORES each, or COPIES lanes the
// same one; ROW_LANES neighbours have those of a row.
#define ROW_LANES (TPK / ROWS)
#define SCORES (KU > ROW_LANES ? KU / ROW_LANES : 1)
#define COPIES (KU < ROW_LANES ? ROW_LANES / KU : 1)

// Invocations of a cluster are neighbours in their subgroup.
#define LANE gl_SubgroupInvocationID
#define INVOCATION (gl_SubgroupID * gl_SubgroupSize + LANE)
#define MEMBER (LANE % TPK)
#define CLUSTER (INVOCATION / TPK)
// The lane that has what cluster lane `c` has: of this lane's cluster.
#define FROM(x, c) subgroupShuffle(x, (LANE & ~(TPK - 1u)) + (c))

// Sums in shared memory: a gap after E items, against bank conflicts.
#if E > 1
#define PADDED(d) ((d) + (d) / E)
#else
#define PADDED(d) (d)
#endif
#define PITCH PADDED(DV)

shared float sums[SLOTS * ROWS * PITCH];
shared float wg_max[WG / TPK * ROWS];
shared float wg_sum[WG / TPK * ROWS];
#if PARTS == PARTS_JOINED
shared uint wg_ticket;
#endif

// Item 0 of chunk j of a lane's slice.
#define ITEM(j) (((j) * TPK + MEMBER) * E)
// Whether it lies within N.
#define HAS(j, N) (N % (TPK * E) == 0 || ITEM(j) < N)
RAW load_raw(T_PTR row, uint item, bool has) {
  RAW x = RAW(0);
  if (has) {
    x = RAW_AT(MOVED(T, row, item));
  }
  return x;
}
#define LOAD_RAW(row, j, N) load_raw(row, ITEM(j), HAS(j, N))

uint first_key, end_key; // of the workgroup
uint64_t k_head, v_head;

// Chunk j of the row of key u. Past the end the last key is read again and counts
// as absent.
#define KEY(base, u) ((base) + (u) * CLUSTERS + CLUSTER)
#define KEY_ROW(head, strides, base, u)                                       \
  MOVED(                                                                      \
      T,                                                                      \
      head,                                                                   \
      int64_t(min(KEY(base, u), end_key - 1)) * int64_t(strides.row))
#define LOAD_K(base, u, j)                                                    \
  LOAD_RAW(KEY_ROW(k_head, A.k_strides, base, u), j, D)
#define LOAD_V(base, u, j)                                                    \
  LOAD_RAW(KEY_ROW(v_head, A.v_strides, base, u), j, DV)

#if SHARED_Q
shared float queries[ROWS * D];
#else
RAW q[ROWS * CHUNKS];
#endif
#if PIECES
#define K_CHUNK(u, j) piece
#define V_CHUNK(u, j) piece
#else
RAW k[KU * CHUNKS];
RAW v[KU * CHUNKS_V];
#define K_CHUNK(u, j) k[(u) * CHUNKS + (j)]
#define V_CHUNK(u, j) v[(u) * CHUNKS_V + (j)]
#endif

FLOATS acc[ROWS * CHUNKS_V * STEPS];
float row_max, row_sum; // of the lane's row, the sum of its own scores

void load_keys(uint base) {
#if !PIECES
  [[unroll]] for (uint u = 0; u < KU; ++u) {
    [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
      k[u * CHUNKS + j] = LOAD_K(base, u, j);
    }
  }
#endif
}

void load_values(uint base) {
#if !PIECES
  [[unroll]] for (uint u = 0; u < KU; ++u) {
    [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
      v[u * CHUNKS_V + j] = LOAD_V(base, u, j);
    }
  }
#endif
}

uint last_row() {
  return A.gqa * A.queries - 1;
}

void load_queries(Rows w) {
  Row row = row_of(w, w.row0);
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    T_PTR at = MOVED(
        T,
        A.q,
        int64_t(w.batch) * A.q_strides.batch +
            int64_t(row.head) * A.q_strides.head +
            int64_t(row.query) * A.q_strides.row);
#if SHARED_Q
    for (uint d = gl_LocalInvocationIndex; d < D; d += WG) {
      queries[r * D + d] = load(at, d);
    }
#else
    [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
      q[r * CHUNKS + j] = LOAD_RAW(at, j, D);
    }
#endif
    // The next row; of those that do not exist, the last again.
    if (w.row0 + r < last_row()) {
      bool wraps = row.head + 1 == (w.kv_head + 1) * A.gqa;
      row.head = wraps ? w.kv_head * A.gqa : row.head + 1;
      row.query += wraps ? 1 : 0;
    }
  }
#if SHARED_Q
  barrier();
#endif
}

// Items i * STEP and on of chunk j of a query.
FLOATS query_items(uint r, uint j, uint i) {
#if SHARED_Q
  uint at = r * D + min(ITEM(j) + i * STEP, D - STEP);
#if STEP == 2
  return vec2(queries[at], queries[at + 1]);
#else
  return queries[at];
#endif
#else
  return floats(q[r * CHUNKS + j], i);
#endif
}

// Sums over lanes: one keeps the half of s that a bit of its number says and gets
// its neighbour's part of it, until one is left. No loop over the bits: the
// driver would have to unroll it to keep s in registers; NVIDIA's seems not to.
#define SCATTER(BIT)                                                          \
  if (ROWS * KU * BIT >= TPK) {                                               \
    [[unroll]] for (uint i = 0; i < ROWS * KU * BIT / TPK; ++i) {             \
      float low = s[i];                                                       \
      float high = s[i + ROWS * KU * BIT / TPK];                              \
      bool upper = (LANE & BIT) != 0;                                         \
      s[i] = (upper ? high : low) +                                           \
          subgroupShuffleXor(upper ? low : high, BIT);                        \
    }                                                                         \
  } else {                                                                    \
    s[0] += subgroupShuffleXor(s[0], BIT);                                    \
  }

// The lane's scores, without scale and masks.
void multiply_keys(uint base, out float scores[SCORES]) {
  float s[ROWS * KU];
  [[unroll]] for (uint i = 0; i < ROWS * KU; ++i) {
    s[i] = 0.0;
  }
  [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
#if PIECES
    RAW piece = LOAD_K(base, 0, j);
#endif
    [[unroll]] for (uint i = 0; i < STEPS; ++i) {
      FLOATS items[KU];
      [[unroll]] for (uint u = 0; u < KU; ++u) {
        items[u] = floats(K_CHUNK(u, j), i);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        FLOATS x = query_items(r, j, i);
        [[unroll]] for (uint u = 0; u < KU; ++u) {
          s[r * KU + u] = dot_add(x, items[u], s[r * KU + u]);
        }
      }
    }
  }
#if TPK >= 32
  SCATTER(16)
#endif
#if TPK >= 16
  SCATTER(8)
#endif
#if TPK >= 8
  SCATTER(4)
#endif
  SCATTER(2)
  SCATTER(1)
  [[unroll]] for (uint i = 0; i < SCORES; ++i) {
    scores[i] = s[i];
  }
}

// Over the lanes that have a row's scores, each once.
#define OVER_BIT(x, OP, BIT)                                                  \
  if (BIT < ROW_LANES && BIT >= COPIES) {                                     \
    x = OP(x, subgroupShuffleXor(x, BIT));                                    \
  }
#define OVER_ROW(x, OP)                                                       \
  OVER_BIT(x, OP, 16)                                                         \
  OVER_BIT(x, OP, 8)                                                          \
  OVER_BIT(x, OP, 4)                                                          \
  OVER_BIT(x, OP, 2)                                                          \
  OVER_BIT(x, OP, 1)

// Of the lane's scores: their keys, masked and scaled, then their weights, with
// row_max, row_sum and acc brought to the new maximum.
void weigh(uint base, Rows w, Row row, inout float scores[SCORES]) {
  float m = row_max;
  [[unroll]] for (uint i = 0; i < SCORES; ++i) {
    uint key = KEY(base, MEMBER % ROW_LANES / COPIES * SCORES + i);
    float s = scores[i] * A.scale;
#if CAUSAL || MASK
    s = masked(s, w.batch, row.head, row.query, min(key, end_key - 1));
    s = is_later(key, row.query) ? HIDDEN : s;
#endif
    scores[i] = key < end_key ? s : ABSENT;
    m = max(m, scores[i]);
  }
  OVER_ROW(m, max)
  if (subgroupAny(m > row_max)) {
    float keep = exp2_diff(row_max, m);
    row_sum *= keep;
    row_max = m;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      float x = FROM(keep, r * ROW_LANES);
      [[unroll]] for (uint i = 0; i < CHUNKS_V * STEPS; ++i) {
        acc[r * CHUNKS_V * STEPS + i] *= x;
      }
    }
  }
  [[unroll]] for (uint i = 0; i < SCORES; ++i) {
    scores[i] = exp2_diff(scores[i], row_max);
    row_sum += scores[i];
  }
}

void add_values(uint base, float weights[SCORES]) {
  [[unroll]] for (uint u = 0; u < KU; ++u) {
    float x[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      x[r] = FROM(weights[u % SCORES], r * ROW_LANES + u / SCORES * COPIES);
    }
    [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
#if PIECES
      RAW piece = LOAD_V(base, u, j);
#endif
      [[unroll]] for (uint i = 0; i < STEPS; ++i) {
        FLOATS items = floats(V_CHUNK(u, j), i);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          uint at = (r * CHUNKS_V + j) * STEPS + i;
          acc[at] = fma(FLOATS(x[r]), items, acc[at]);
        }
      }
    }
  }
}

// This cluster's share of the keys.
void walk_keys(Rows w) {
  load_keys(first_key);
  load_values(first_key);
  load_queries(w);
  row_max = ABSENT;
  row_sum = 0.0;
  [[unroll]] for (uint i = 0; i < ROWS * CHUNKS_V * STEPS; ++i) {
    acc[i] = FLOATS(0.0);
  }
  Row row;
#if CAUSAL || MASK
  row = row_of(w, min(w.row0 + MEMBER / ROW_LANES, last_row()));
#endif
  for (uint base = first_key; base < end_key; base += CLUSTERS * KU) {
    uint next = base + CLUSTERS * KU;
    float scores[SCORES];
    multiply_keys(base, scores);
    if (next < end_key) {
      load_keys(next);
    }
    weigh(base, w, row, scores);
    add_values(base, scores);
    if (next < end_key) {
      load_values(next);
    }
  }
}

// Into all lanes of a subgroup that have the same items.
void merge_clusters() {
#define ADD(x, y) (x) + (y)
  OVER_ROW(row_sum, ADD)
  float m = row_max;
  for (uint o = TPK; o < gl_SubgroupSize; o *= 2) {
    m = max(m, subgroupShuffleXor(m, o));
  }
  float keep = exp2_diff(row_max, m);
  row_max = m;
  row_sum *= keep;
  for (uint o = TPK; o < gl_SubgroupSize; o *= 2) {
    row_sum += subgroupShuffleXor(row_sum, o);
  }
  if (MEMBER % ROW_LANES == 0 && LANE < TPK) {
    uint at = gl_SubgroupID * ROWS + MEMBER / ROW_LANES;
    wg_max[at] = row_max;
    wg_sum[at] = row_sum;
  }
  barrier();
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    m = max(m, wg_max[s * ROWS + MEMBER / ROW_LANES]);
  }
  keep *= exp2_diff(row_max, m);
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    float x = FROM(keep, r * ROW_LANES);
    [[unroll]] for (uint i = 0; i < CHUNKS_V * STEPS; ++i) {
      acc[r * CHUNKS_V * STEPS + i] *= x;
    }
  }
  for (uint o = TPK; o < gl_SubgroupSize; o *= 2) {
    [[unroll]] for (uint i = 0; i < ROWS * CHUNKS_V * STEPS; ++i) {
      FLOATS x = acc[i];
      acc[i] = x + subgroupShuffleXor(x, o);
    }
  }
}

// acc of all subgroups into `sums`, SLOTS subgroups at a time.
void merge_subgroups() {
  uint clusters = gl_SubgroupSize / TPK;
  for (uint s = 0; s < gl_NumSubgroups; s += SLOTS) {
    if (gl_SubgroupID - s < SLOTS) {
      uint slot = (gl_SubgroupID - s) * ROWS * PITCH;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
          if (r % clusters == LANE / TPK && HAS(j, DV)) {
            uint at = slot + r * PITCH + PADDED(ITEM(j));
            [[unroll]] for (uint e = 0; e < E; ++e) {
#if STEP == 2
              float x = acc[(r * CHUNKS_V + j) * STEPS + e / 2][e % 2];
#else
              float x = acc[r * CHUNKS_V + j];
#endif
              sums[at + e] = s == 0 ? x : sums[at + e] + x;
            }
          }
        }
      }
    }
    barrier();
  }
}

void store_rows(uint group, uint split, Rows w) {
  uint slots = min(SLOTS, gl_NumSubgroups);
  uint rows = min(ROWS, A.gqa * A.queries - w.row0);
  for (uint i = gl_LocalInvocationIndex; i < rows * DV; i += WG) {
    uint r = i / DV;
    uint d = i % DV;
    float x = 0.0;
    for (uint s = 0; s < slots; ++s) {
      x += sums[(s * ROWS + r) * PITCH + PADDED(d)];
    }
    float m = ABSENT;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      m = max(m, wg_max[s * ROWS + r]);
    }
    float total = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      total += wg_sum[s * ROWS + r] * exp2_diff(wg_max[s * ROWS + r], m);
    }
#if PARTS
    PartItems to = parts_of(group, r);
    to.v[split * PART + d] = x;
    if (d == 0) {
      to.v[split * PART + DV] = m;
      to.v[split * PART + DV + 1] = total;
    }
#else
    Row row = row_of(w, w.row0 + r);
    x *= add_sink(row.head, m, total);
    if (d == 0) {
      store_lse(w.batch, row.head, row.query, m, total);
    }
    store(A.y, out_row(w, row) * DV + d, total == 0.0 ? 0.0 : x / total);
#endif
  }
}

#if PARTS == PARTS_JOINED
// The last workgroup that comes here joins the parts of all, and leaves the
// counter as it found it, zero. Each invocation's stores are seen by the device
// before it comes to the barrier, and that is before the workgroup is counted.
void join_if_last(uint group, Rows w) {
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationIndex == 0) {
    memoryBarrierBuffer();
    wg_ticket = atomicAdd((A.arrived + group).v[0], 1u);
    memoryBarrierBuffer();
  }
  barrier();
  if (wg_ticket == A.splits - 1) {
    memoryBarrierBuffer();
    if (gl_LocalInvocationIndex == 0) {
      (A.arrived + group).v[0] = 0;
    }
    join(group, w);
  }
}
#endif

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.groups * A.splits) {
    uint split = 0;
#if PARTS
    split = group / A.groups;
    group -= split * A.groups;
#endif
    Rows w = rows_of(group);
    k_head = uint64_t(A.k) +
        uint64_t((int64_t(w.batch) * A.k_strides.batch +
                  int64_t(w.kv_head) * A.k_strides.head) * T_SIZE);
    v_head = uint64_t(A.v) +
        uint64_t((int64_t(w.batch) * A.v_strides.batch +
                  int64_t(w.kv_head) * A.v_strides.head) * T_SIZE);
    first_key = split * A.split_keys;
    end_key = min(A.keys, first_key + A.split_keys);
    walk_keys(w);
    merge_clusters();
    merge_subgroups();
    store_rows(group, split, w);
#if PARTS == PARTS_JOINED
    join_if_last(group, w);
#endif
  }
}
