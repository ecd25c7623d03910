// variants: T=f32,f16,bf16 D=64,128 DV=128 TPK=8 ROWS=1,4 WG=128 KU=2 VEC=0,1 MASK=0 CAUSAL=0 SINKS=0 SPLIT=0 LSE=0; T=f32,f16,bf16 D=64,128 DV=128 TPK=8 ROWS=4 WG=128 KU=1 VEC=0,1 MASK=0 CAUSAL=0 SINKS=0 SPLIT=0 LSE=0; T=bf16 D=64 DV=64 TPK=8 ROWS=8 WG=128 KU=2 VEC=1 MASK=0 CAUSAL=0 SINKS=0 SPLIT=1 LSE=0; T=f16,bf16 D=256 DV=256 TPK=8 ROWS=1,2 WG=128 KU=1 VEC=0,1 MASK=0 CAUSAL=0 SINKS=0 SPLIT=1 LSE=0; T=f16 D=80 DV=80 TPK=4 ROWS=2 WG=64 KU=1 VEC=1 MASK=0,1,2 CAUSAL=0,1 SINKS=0,1 SPLIT=0 LSE=0; T=bf16 D=256 DV=512 TPK=8,16 ROWS=1 WG=128 KU=1 VEC=1 MASK=0,2 CAUSAL=1 SINKS=0 SPLIT=1 LSE=0; T=f16 D=64 DV=64 TPK=8 ROWS=2 WG=64 KU=1 VEC=1 MASK=0 CAUSAL=1 SINKS=0 SPLIT=0 LSE=1
//
// Attention for few query rows, K and V read once, in place.
//
// A workgroup takes ROWS query rows that share a KV head (the heads of a GQA
// group, and the queries) and a range of keys. TPK neighbouring invocations
// handle a key together: each holds a slice of k and v, scores are summed by
// shuffles, and every such cluster runs its own online softmax. Clusters are
// merged by shuffles, then subgroups through shared memory.
// VEC: 16-byte loads of k and v. KU: keys in flight. SPLIT: y is partial
// results, [row][split][DV + 2] floats: unnormalised values, maximum, sum.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/mask.glsl"

#if SPLIT
#define Y_PTR Ptr_f32
#else
#define Y_PTR T_PTR
#endif

// Mirrors DecodeParams in ops/attention/params.h. Rows of y are laid out
// (batch, query, head).
#define ARGS                                                                  \
  T_PTR q; T_PTR k; T_PTR v; MASK_POINTER SINKS_POINTER Y_PTR y; LSE_POINTER  \
  uint batches; uint heads; uint kv_heads; uint queries; uint keys;           \
  uint row_groups; uint splits; uint split_keys;                              \
  int q_batch; int q_head; int q_row; float scale;                            \
  int64_t k_batch; int64_t k_head; int64_t k_row;                             \
  int64_t v_batch; int64_t v_head; int64_t v_row; MASK_STRIDES
#if MASK
#define MASK_STRIDES                                                          \
  int64_t m_batch; int64_t m_head; int64_t m_row; int64_t m_key;
#else
#define MASK_STRIDES
#endif
#include "common/args.glsl"

layout(local_size_x = WG) in;

#if VEC
#define E VEC16
#else
#define E 1
#endif
#define CHUNKS ((D / E + TPK - 1) / TPK)
#define CHUNKS_V ((DV / E + TPK - 1) / TPK)
#define CLUSTERS (WG / TPK)

shared float queries[ROWS * D];
shared float sums[ROWS * DV];
shared float wg_max[WG / TPK * ROWS];
shared float wg_sum[WG / TPK * ROWS];

float row_max[ROWS];
float row_sum[ROWS];
float acc[ROWS * CHUNKS_V * E];

// Item e of chunk j of invocation c's slice.
#define ITEM(j, c, e) (((j) * TPK + (c)) * E + (e))

void load_slice_k(T_PTR row, uint c, inout float x[CHUNKS * E]) {
  [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
    [[unroll]] for (uint e = 0; e < E; ++e) {
      x[j * E + e] = 0.0;
    }
    if (ITEM(j, c, 0) < D) {
#if VEC
      Vec16 got = load16(row, int64_t(ITEM(j, c, 0)));
      UNPACK16(got, x, j * E)
#else
      x[j] = load(row, ITEM(j, c, 0));
#endif
    }
  }
}

void load_slice_v(T_PTR row, uint c, inout float x[CHUNKS_V * E]) {
  [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
    [[unroll]] for (uint e = 0; e < E; ++e) {
      x[j * E + e] = 0.0;
    }
    if (ITEM(j, c, 0) < DV) {
#if VEC
      Vec16 got = load16(row, int64_t(ITEM(j, c, 0)));
      UNPACK16(got, x, j * E)
#else
      x[j] = load(row, ITEM(j, c, 0));
#endif
    }
  }
}

T_PTR moved(T_PTR p, int64_t items) {
  return T_PTR(uint64_t(p) + uint64_t(items * T_SIZE));
}

void attend(uint group) {
  uint split = group % A.splits;
  uint rest = group / A.splits;
  uint row_group = rest % A.row_groups;
  rest /= A.row_groups;
  uint kv_head = rest % A.kv_heads;
  uint batch = rest / A.kv_heads;
  uint gqa = A.heads / A.kv_heads;
  uint rows = gqa * A.queries;
  uint row0 = row_group * ROWS;

  // Invocations of a cluster are neighbours in their subgroup.
  uint t = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint c = t % TPK;
  uint cluster = t / TPK;

  for (uint i = gl_LocalInvocationIndex; i < ROWS * D; i += WG) {
    uint r = row0 + i / D;
    float x = 0.0;
    if (r < rows) {
      int64_t at = int64_t(batch) * A.q_batch +
          int64_t(kv_head * gqa + r % gqa) * A.q_head +
          int64_t(r / gqa) * A.q_row + int64_t(i % D);
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

  T_PTR k0 = moved(
      A.k, int64_t(batch) * A.k_batch + int64_t(kv_head) * A.k_head);
  T_PTR v0 = moved(
      A.v, int64_t(batch) * A.v_batch + int64_t(kv_head) * A.v_head);
  uint begin = split * A.split_keys;
  uint end = min(A.keys, begin + A.split_keys);

  for (uint base = begin; base < end; base += CLUSTERS * KU) {
    float ks[KU][CHUNKS * E];
    float vs[KU][CHUNKS_V * E];
    [[unroll]] for (uint u = 0; u < KU; ++u) {
      // Past the end the last key is read again and counts as absent.
      uint key = min(base + u * CLUSTERS + cluster, end - 1);
      load_slice_k(moved(k0, int64_t(key) * A.k_row), c, ks[u]);
      load_slice_v(moved(v0, int64_t(key) * A.v_row), c, vs[u]);
    }
    [[unroll]] for (uint u = 0; u < KU; ++u) {
      uint key = base + u * CLUSTERS + cluster;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float s = 0.0;
        [[unroll]] for (uint j = 0; j < CHUNKS; ++j) {
          [[unroll]] for (uint e = 0; e < E; ++e) {
            uint at = ITEM(j, c, e);
#if D % (TPK * E) != 0
            at = min(at, D - 1);
#endif
            s = fma(queries[r * D + at], ks[u][j * E + e], s);
          }
        }
        [[unroll]] for (uint o = TPK / 2; o > 0; o /= 2) {
          s += subgroupShuffleXor(s, o);
        }
#if CAUSAL || MASK
        uint row = min(row0 + r, rows - 1);
#endif
#if MASK
        int64_t at = int64_t(batch) * A.m_batch +
            int64_t(kv_head * gqa + row % gqa) * A.m_head +
            int64_t(row / gqa) * A.m_row +
            int64_t(min(key, A.keys - 1)) * A.m_key;
        s = MASK_ITEM(s, at);
#endif
#if CAUSAL
        if (key + A.queries > A.keys + row / gqa) {
          s = HIDDEN;
        }
#endif
        s = key < end ? s : ABSENT;
        float m = max(row_max[r], s);
        float keep = exp2_diff(row_max[r], m);
        float p = exp2_diff(s, m);
        row_max[r] = m;
        row_sum[r] = fma(row_sum[r], keep, p);
        [[unroll]] for (uint i = 0; i < CHUNKS_V * E; ++i) {
          acc[r * CHUNKS_V * E + i] =
              fma(acc[r * CHUNKS_V * E + i], keep, p * vs[u][i]);
        }
      }
    }
  }

  // Clusters of a subgroup.
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

  // Subgroups of the workgroup, one after the other.
  if (gl_SubgroupInvocationID == 0) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      wg_max[gl_SubgroupID * ROWS + r] = row_max[r];
      wg_sum[gl_SubgroupID * ROWS + r] = row_sum[r];
    }
  }
  barrier();
  float top[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    top[r] = ABSENT;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      top[r] = max(top[r], wg_max[s * ROWS + r]);
    }
  }
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    if (gl_SubgroupID == s && gl_SubgroupInvocationID < TPK) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float keep = exp2_diff(row_max[r], top[r]);
        [[unroll]] for (uint j = 0; j < CHUNKS_V; ++j) {
          [[unroll]] for (uint e = 0; e < E; ++e) {
            uint at = ITEM(j, c, e);
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

  for (uint i = gl_LocalInvocationIndex; i < ROWS * DV; i += WG) {
    uint r = i / DV;
    uint d = i % DV;
    if (row0 + r < rows) {
      float m = ABSENT;
      for (uint s = 0; s < gl_NumSubgroups; ++s) {
        m = max(m, wg_max[s * ROWS + r]);
      }
      float total = 0.0;
      for (uint s = 0; s < gl_NumSubgroups; ++s) {
        total += wg_sum[s * ROWS + r] *
            exp2_diff(wg_max[s * ROWS + r], m);
      }
      uint head = kv_head * gqa + (row0 + r) % gqa;
      uint query = (row0 + r) / gqa;
      uint64_t out_row =
          uint64_t(batch * A.queries + query) * A.heads + head;
      float x = sums[i];
#if SPLIT
      uint64_t at = (out_row * A.splits + split) * (DV + 2);
      store(A.y, at + d, x);
      if (d == 0) {
        store(A.y, at + DV, m);
        store(A.y, at + DV + 1, total);
      }
#else
#if SINKS
      float sink = load(A.sinks, head) * LOG2E;
      float m_new = max(m, sink);
      float keep = exp2_diff(m, m_new);
      x *= keep;
      total = total * keep + exp2(sink - m_new);
      m = m_new;
#endif
#if LSE
      if (d == 0) {
        store(
            A.lse,
            (uint64_t(batch) * A.heads + head) * A.queries + query,
            natural_lse(m, total));
      }
#endif
      store(A.y, out_row * DV + d, total == 0.0 ? 0.0 : x / total);
#endif
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.splits * A.row_groups * A.kv_heads * A.batches) {
    attend(group);
  }
}
