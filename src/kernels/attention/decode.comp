// Attention for few query rows, K and V read once, in place.
//
// A workgroup takes ROWS query rows that share a KV head (the heads of a GQA
// group, and the queries) and a range of keys. TPK neighbouring invocations
// handle a key together: each holds a slice of k and v, scores are summed by
// shuffles, and every such cluster runs its own online softmax. Clusters are
// merged by shuffles, then subgroups through shared memory.
// VEC: 16-byte loads of k and v. KU: keys in flight. PIECES: no slice of k and v
// is held, each piece is used when it is there, for lack of registers. SPLIT: y is partial
// results, [row][split][DV + 2] floats: unnormalised values, maximum, sum.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/decode.h"
#define ARGS_BLOCK DecodeArgs
#include "common/args.glsl"
#include "attention/mask.glsl"

layout(local_size_x = WG) in;

#if VEC
#define E VEC16
#else
#define E 1
#endif
#define CHUNKS ((D / E + TPK - 1) / TPK)
#define CHUNKS_V ((DV / E + TPK - 1) / TPK)
#define CLUSTERS (WG / TPK)

// Invocations of a cluster are neighbours in their subgroup.
#define INVOCATION                                                            \
  (gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID)
#define MEMBER (INVOCATION % TPK)
#define CLUSTER (INVOCATION / TPK)

shared float queries[ROWS * D];
shared float sums[ROWS * DV];
shared float wg_max[WG / TPK * ROWS];
shared float wg_sum[WG / TPK * ROWS];

float row_max[ROWS];
float row_sum[ROWS];
float acc[ROWS * CHUNKS_V * E];

// What a workgroup does: rows of a KV head, from row0 on, and a range of keys.
struct Work {
  uint batch, kv_head;
  uint gqa, rows; // heads and rows of the KV head
  uint row0;
  uint split;
};

Work work_of(uint group) {
  Work w;
  w.split = group % A.splits;
  uint rest = group / A.splits;
  w.row0 = rest % A.row_groups * ROWS;
  rest /= A.row_groups;
  w.kv_head = rest % A.kv_heads;
  w.batch = rest / A.kv_heads;
  w.gqa = A.heads / A.kv_heads;
  w.rows = w.gqa * A.queries;
  return w;
}

uint head_of(Work w, uint row) {
  return w.kv_head * w.gqa + row % w.gqa;
}

// Item e of chunk j of invocation c's slice.
#define ITEM(j, c, e) (((j) * TPK + (c)) * E + (e))

#if VEC
#define LOAD_CHUNK(row, at, x, to)                                            \
  Vec16 got = load16(row, int64_t(at));                                       \
  UNPACK16(got, x, to)
#else
#define LOAD_CHUNK(row, at, x, to) x[to] = load(row, at);
#endif
// Chunk j of a row of N items, to x[to] and on.
#define LOAD_PIECE(row, j, c, N, x, to)                                       \
  [[unroll]] for (uint e_ = 0; e_ < E; ++e_) {                                \
    x[(to) + e_] = 0.0;                                                       \
  }                                                                           \
  if (ITEM(j, c, 0) < N) {                                                    \
    LOAD_CHUNK(row, ITEM(j, c, 0), x, to)                                     \
  }
#if PIECES
// piece: an item of the chunk that USE_K or USE_V has loaded last.
#define USE_K(u, j)                                                           \
  float piece[E];                                                             \
  LOAD_PIECE(k_row, j, c, D, piece, 0)
#define USE_V(u, j)                                                           \
  float piece[E];                                                             \
  LOAD_PIECE(v_row, j, c, DV, piece, 0)
#define K_ITEM(u, j, e) piece[e]
#define V_ITEM(u, j, e) piece[e]
#else
#define LOAD_SLICE(NAME, CHUNKS, N)                                           \
  void NAME(T_PTR row, uint c, inout float x[CHUNKS * E]) {                   \
    [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {                            \
      LOAD_PIECE(row, j, c, N, x, j *E)                                       \
    }                                                                         \
  }
LOAD_SLICE(load_slice_k, CHUNKS, D)
LOAD_SLICE(load_slice_v, CHUNKS_V, DV)
#define USE_K(u, j)
#define USE_V(u, j)
#define K_ITEM(u, j, e) ks[u][(j) * E + (e)]
#define V_ITEM(u, j, e) vs[u][(j) * E + (e)]
#endif

void start(Work w) {
  for (uint i = gl_LocalInvocationIndex; i < ROWS * D; i += WG) {
    uint r = w.row0 + i / D;
    float x = 0.0;
    if (r < w.rows) {
      int64_t at = int64_t(w.batch) * A.q_batch +
          int64_t(head_of(w, r)) * A.q_head + int64_t(r / w.gqa) * A.q_row +
          int64_t(i % D);
      x = load(A.q, at) * A.scale;
    }
    queries[i] = x;
  }
  for (uint i = gl_LocalInvocationIndex; i < ROWS * DV; i += WG) {
    sums[i] = 0.0;
  }
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    row_max[r] = ABSENT;
    row_sum[r] = 0.0;
  }
  [[unroll]] for (uint i = 0; i < ROWS * CHUNKS_V * E; ++i) {
    acc[i] = 0.0;
  }
  barrier();
}

// This cluster's share of the keys.
void walk_keys(Work w) {
  uint c = MEMBER;
  T_PTR k0 = AT_HEAD(A.k, A.k_strides, w.batch, w.kv_head);
  T_PTR v0 = AT_HEAD(A.v, A.v_strides, w.batch, w.kv_head);
  uint begin = w.split * A.split_keys;
  uint end = min(A.keys, begin + A.split_keys);

  for (uint base = begin; base < end; base += CLUSTERS * KU) {
    // Past the end the last key is read again and counts as absent.
#if PIECES
    int64_t at_key = int64_t(min(base + CLUSTER, end - 1));
    T_PTR k_row = MOVED(T, k0, at_key * A.k_strides.row);
    T_PTR v_row = MOVED(T, v0, at_key * A.v_strides.row);
#else
    float ks[KU][CHUNKS * E];
    float vs[KU][CHUNKS_V * E];
    [[unroll]] for (uint u = 0; u < KU; ++u) {
      uint key = min(base + u * CLUSTERS + CLUSTER, end - 1);
      load_slice_k(MOVED(T, k0, int64_t(key) * A.k_strides.row), c, ks[u]);
      load_slice_v(MOVED(T, v0, int64_t(key) * A.v_strides.row), c, vs[u]);
    }
#endif
    [[unroll]] for (uint u = 0; u < KU; ++u) {
      uint key = base + u * CLUSTERS + CLUSTER;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float s = 0.0;
        [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
          USE_K(u, j)
          [[unroll]] for (uint e = 0; e < E; ++e) {
            uint at = ITEM(j, c, e);
#if D % (TPK * E) != 0
            at = min(at, D - 1);
#endif
            s = fma(queries[r * D + at], K_ITEM(u, j, e), s);
          }
        }
        [[unroll]] for (uint o = TPK / 2; o > 0; o /= 2) {
          s += subgroupShuffleXor(s, o);
        }
#if CAUSAL || MASK
        uint row = min(w.row0 + r, w.rows - 1);
        uint query = row / w.gqa;
        s = masked(
            s, w.batch, head_of(w, row), query, min(key, A.keys - 1));
        s = is_later(key, query) ? HIDDEN : s;
#endif
        s = key < end ? s : ABSENT;
        float m = max(row_max[r], s);
        float keep = exp2_diff(row_max[r], m);
        float p = exp2_diff(s, m);
        row_max[r] = m;
        row_sum[r] = fma(row_sum[r], keep, p);
        [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
          USE_V(u, j)
          [[unroll]] for (uint e = 0; e < E; ++e) {
            uint i = (r * CHUNKS_V + j) * E + e;
            acc[i] = fma(acc[i], keep, p * V_ITEM(u, j, e));
          }
        }
      }
    }
  }
}

void merge_clusters() {
  for (uint o = TPK; o < gl_SubgroupSize; o *= 2) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      float other = subgroupShuffleXor(row_max[r], o);
      float m = max(row_max[r], other);
      float keep = exp2_diff(row_max[r], m);
      float take = exp2_diff(other, m);
      row_max[r] = m;
      row_sum[r] =
          row_sum[r] * keep + subgroupShuffleXor(row_sum[r], o) * take;
      [[unroll]] for (uint i = 0; i < CHUNKS_V * E; ++i) {
        float x = acc[r * CHUNKS_V * E + i];
        acc[r * CHUNKS_V * E + i] =
            x * keep + subgroupShuffleXor(x, o) * take;
      }
    }
  }
}

float largest(uint r) {
  float m = ABSENT;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    m = max(m, wg_max[s * ROWS + r]);
  }
  return m;
}

// One after the other, into `sums`.
void merge_subgroups() {
  if (gl_SubgroupInvocationID == 0) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      wg_max[gl_SubgroupID * ROWS + r] = row_max[r];
      wg_sum[gl_SubgroupID * ROWS + r] = row_sum[r];
    }
  }
  barrier();
  float top[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    top[r] = largest(r);
  }
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    if (gl_SubgroupID == s && gl_SubgroupInvocationID < TPK) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float keep = exp2_diff(row_max[r], top[r]);
        [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
          [[unroll]] for (uint e = 0; e < E; ++e) {
            uint at = ITEM(j, MEMBER, e);
            if (at < DV) {
              sums[r * DV + at] +=
                  acc[(r * CHUNKS_V + j) * E + e] * keep;
            }
          }
        }
      }
    }
    barrier();
  }
}

void store_rows(Work w) {
  for (uint i = gl_LocalInvocationIndex; i < ROWS * DV; i += WG) {
    uint r = i / DV;
    uint d = i % DV;
    uint row = w.row0 + r;
    if (row < w.rows) {
      float m = largest(r);
      float total = 0.0;
      for (uint s = 0; s < gl_NumSubgroups; ++s) {
        total += wg_sum[s * ROWS + r] *
            exp2_diff(wg_max[s * ROWS + r], m);
      }
      uint head = head_of(w, row);
      uint query = row / w.gqa;
      uint64_t out_row =
          uint64_t(w.batch * A.queries + query) * A.heads + head;
#if SPLIT
      uint64_t at = (out_row * A.splits + w.split) * (DV + 2);
      store(A.y, at + d, sums[i]);
      if (d == 0) {
        store(A.y, at + DV, m);
        store(A.y, at + DV + 1, total);
      }
#else
      float x = sums[i] * add_sink(head, m, total);
      if (d == 0) {
        store_lse(w.batch, head, query, m, total);
      }
      store(A.y, out_row * DV + d, total == 0.0 ? 0.0 : x / total);
#endif
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.splits * A.row_groups * A.kv_heads * A.batches) {
    Work work = work_of(group);
    start(work);
    walk_keys(work);
    merge_clusters();
    merge_subgroups();
    store_rows(work);
  }
}
