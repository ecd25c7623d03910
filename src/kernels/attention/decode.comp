// Attention for few query rows, with K and V read once, in place (split over
// keys as in Flash-Decoding, Dao et al., 2023).
//
// A workgroup takes ROWS query rows of one KV head (the heads of a GQA group
// times the queries) and a range of keys. A cluster of TPK adjacent invocations
// handles KU keys at a time; each invocation holds a slice of q, k and v. A
// cluster's ROWS * KU partial scores are reduced and scattered over its lanes,
// so that a lane holds few scores of one row and runs the online softmax on
// these alone; weights are exchanged by shuffles. Loads of the next k are
// issued after its products, likewise for v, so that each load overlaps with
// the other half of the work.
// Clusters are merged by shuffles, subgroups through shared memory. Workgroups
// that share keys write PARTS; the last one to arrive joins them, and none
// waits.
// To save registers, q can be in shared memory (SHARED_Q), and k and v can be
// loaded piecewise at their use (PIECES).
// In a quantized cache k and v are codes with a scale and a bias per group.
#include "common/types.glsl"
#include "attention/decode.h"
#if BITS
#define ARGS_BLOCK QuantizedDecodeArgs
#else
#define ARGS_BLOCK DecodeArgs
#endif
#include "common/args.glsl"
#define HEADS (A.gqa * A.kv_heads)
#include "attention/mask.glsl"
#if BITS
#define E CHUNK
#define STEP 2
#define FLOATS vec2
#else
#include "attention/raw.glsl"
#endif
#include "attention/join.glsl"

layout(local_size_x = WG) in;

#define CHUNKS ((D / E + TPK - 1) / TPK)
#define CHUNKS_V ((DV / E + TPK - 1) / TPK)
#define CLUSTERS (WG / TPK)
#define STEPS (E / STEP)

// Each lane holds SCORES of a cluster's ROWS * KU scores, or COPIES lanes hold
// the same one; ROW_LANES adjacent lanes hold the scores of a row.
#define ROW_LANES (TPK / ROWS)
#define SCORES (KU > ROW_LANES ? KU / ROW_LANES : 1)
#define COPIES (KU < ROW_LANES ? ROW_LANES / KU : 1)

// The invocations of a cluster are adjacent in their subgroup.
#define LANE gl_SubgroupInvocationID
#define INVOCATION (gl_SubgroupID * gl_SubgroupSize + LANE)
#define MEMBER (LANE % TPK)
#define CLUSTER (INVOCATION / TPK)
// Value of x in lane `c` of this lane's cluster.
#define FROM(x, c) subgroupShuffle(x, (LANE & ~(TPK - 1u)) + (c))

// Index into `sums`, with a gap after E items against bank conflicts.
#if E > 1
#define PADDED(d) ((d) + (d) / E)
#else
#define PADDED(d) (d)
#endif
#define PITCH PADDED(DV)

shared float sums[SLOTS * ROWS * PITCH];
shared float wg_max[WG / TPK * ROWS];
shared float wg_sum[WG / TPK * ROWS];
#if PARTS
shared uint wg_ticket;
#endif

// Item 0 of chunk j of a lane's slice.
#define ITEM(j) (((j) * TPK + MEMBER) * E)
// Whether chunk j lies within the row's N items.
#define HAS(j, N) (N % (TPK * E) == 0 || ITEM(j) < N)

uint first_key, end_key; // range of the workgroup
uint64_t k_head, v_head;

// Index of key u. Beyond the end the last key is reread and scored as ABSENT.
#define KEY(base, u) ((base) + (u) * CLUSTERS + CLUSTER)

FLOATS acc[ROWS * CHUNKS_V * STEPS];
float row_max, row_sum; // of the lane's row; row_sum is over its own scores

uint last_row() {
  return A.gqa * A.queries - 1;
}

#if BITS
#include "attention/decode_codes.glsl"
#else
#include "attention/decode_items.glsl"
#endif
#include "attention/clusters.glsl"

// Processes this cluster's share of the keys.
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
    float s[ROWS * KU];
    multiply_keys(base, s);
    float scores[SCORES];
    scatter(s, scores);
    if (next < end_key) {
      load_keys(next);
    }
    make_weights(base, w, row, scores);
    add_values(base, scores);
    if (next < end_key) {
      load_values(next);
    }
  }
}

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.groups * A.splits) {
    uint split = 0;
#if PARTS
    split = group / A.groups;
    group -= split * A.groups;
#endif
    Rows w = rows_of(group);
    begin_head(w);
    first_key = split * A.split_keys;
    end_key = min(A.keys, first_key + A.split_keys);
    walk_keys(w);
    finish_values();
    merge_clusters();
    merge_subgroups();
    store_rows(group, split, w);
#if PARTS
    join_if_last(group, w);
#endif
  }
}
