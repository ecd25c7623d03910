// Softmax of the scores within clusters of decode.comp, and the merge of
// clusters, subgroups and workgroups into whole rows.
#pragma once

// One step of a reduce-scatter over lanes: each lane keeps the half of s
// selected by one bit of its index and adds its neighbour's part, until one
// value is left. Written without a loop over bits, which NVIDIA's compiler does
// not unroll, so s would leave registers.
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

// Reduces the cluster's scores and returns this lane's share.
void scatter(inout float s[ROWS * KU], out float scores[SCORES]) {
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

// Reduction over the lanes that hold distinct scores of one row.
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

// Masks and scales this lane's scores and turns them into weights; rescales
// row_max, row_sum and acc to the new maximum.
void make_weights(uint base, Rows w, Row row, inout float scores[SCORES]) {
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
      keep_values(r, x);
    }
  }
  [[unroll]] for (uint i = 0; i < SCORES; ++i) {
    scores[i] = exp2_diff(scores[i], row_max);
    row_sum += scores[i];
  }
}

// Merges clusters into all lanes of the workgroup that hold the same items.
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

// Adds acc of all subgroups to `sums`, SLOTS subgroups at a time.
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
    store(A.y, out_row(w, row) * DV + d, EMPTY(total) ? 0.0 : x / total);
#endif
  }
}

#if PARTS
// The last workgroup to arrive joins all parts and resets the counter. Stores
// are visible to the device before the barrier, thus before the increment.
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
