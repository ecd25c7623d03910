// variants: T=f32,f16,bf16 D=64,128 DV=128 BQ=32 BK=64 VEC=0,1 MASK=0 CAUSAL=0,1 SINKS=0 LSE=0; T=f16 D=80 DV=80 BQ=32 BK=64 VEC=1 MASK=0,1,2 CAUSAL=0,1 SINKS=0,1 LSE=0; T=f32 D=256 DV=512 BQ=16 BK=64 VEC=1 MASK=2 CAUSAL=0 SINKS=0 LSE=0; T=f32,f16,bf16 D=64,128 DV=128 BQ=32 BK=64 VEC=1 MASK=0 CAUSAL=1 SINKS=0 LSE=1
//
// Tiled attention for many query rows, with an online softmax.
//
// A workgroup takes BQ query rows of one head and walks over tiles of BK keys.
// Scores are a small matrix product, SLICE columns of q and k at a time
// through shared memory; then four invocations a row find the row's new
// maximum and turn scores into weights; then V_ROWS rows of v at a time are
// accumulated. 8 x 16 invocations: ty owns BQ/8 rows, tx owns BK/16 keys and
// every sixteenth group of columns of y.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/mask.glsl"

// Mirrors PrefillParams in ops/attention/params.h. Rows of y are laid out
// (batch, query, head).
#define ARGS                                                                  \
  T_PTR q; T_PTR k; T_PTR v; MASK_POINTER SINKS_POINTER T_PTR y; LSE_POINTER  \
  uint batches; uint heads; uint kv_heads; uint queries; uint keys;           \
  uint tiles; float scale; uint pad;                                          \
  int64_t q_batch; int64_t q_head; int64_t q_row;                             \
  int64_t k_batch; int64_t k_head; int64_t k_row;                             \
  int64_t v_batch; int64_t v_head; int64_t v_row;                             \
  int64_t m_batch; int64_t m_head; int64_t m_row; int64_t m_key;
#include "common/args.glsl"

#define WG 128
layout(local_size_x = WG) in;

#define SLICE 32
#define V_ROWS 8
#define RQ (BQ / 8) // rows of an invocation
#define RK (BK / 16) // keys of an invocation
#define RV ((DV + 15) / 16) // columns of an invocation
#define LANES (WG / BQ) // invocations a row, in the softmax

// Rows padded against bank conflicts.
#define Q_ROW (SLICE + 1)
#define K_ROW (SLICE + 1)
#define S_ROW (BK + 1)
#define QK_ITEMS (BQ * Q_ROW + BK * K_ROW)
#define V_ITEMS (V_ROWS * RV * 16)
#if QK_ITEMS > V_ITEMS
#define POOL QK_ITEMS
#else
#define POOL V_ITEMS
#endif
shared float pool[POOL]; // q and k slices; then rows of v
shared float scores[BQ * S_ROW];
shared float keep_row[BQ];
shared float sum_row[BQ];

#define K_BASE (BQ * Q_ROW)

T_PTR moved(T_PTR p, int64_t items) {
  return T_PTR(uint64_t(p) + uint64_t(items * T_SIZE));
}

void attend(uint group) {
  // Late tiles see the most keys under a causal mask: start them first.
  uint tile = A.tiles - 1 - group % A.tiles;
  uint rest = group / A.tiles;
  uint head = rest % A.heads;
  uint batch = rest / A.heads;
  uint kv_head = head / (A.heads / A.kv_heads);
  uint query0 = tile * BQ;
  uint t = gl_LocalInvocationIndex;
  uint tx = t % 16;
  uint ty = t / 16;
  uint soft_row = t / LANES;
  uint soft_lane = t % LANES;

  T_PTR q = moved(A.q, int64_t(batch) * A.q_batch + int64_t(head) * A.q_head);
  T_PTR k =
      moved(A.k, int64_t(batch) * A.k_batch + int64_t(kv_head) * A.k_head);
  T_PTR v =
      moved(A.v, int64_t(batch) * A.v_batch + int64_t(kv_head) * A.v_head);

  float acc[RQ * RV];
  [[unroll]] for (uint i = 0; i < RQ * RV; ++i) {
    acc[i] = 0.0;
  }
  float row_max = ABSENT;
  float row_sum = 0.0;

  uint key_end = A.keys;
#if CAUSAL
  // Without enough keys the first rows see none, and average all.
  if (A.keys >= A.queries) {
    key_end = min(A.keys, query0 + BQ + (A.keys - A.queries));
  }
#endif

  for (uint key0 = 0; key0 < key_end; key0 += BK) {
    float s[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) {
      s[i] = 0.0;
    }
    for (uint d0 = 0; d0 < D; d0 += SLICE) {
      barrier();
#if VEC
      for (uint i = t; i < BQ * SLICE / 4; i += WG) {
        uint r = i / (SLICE / 4);
        uint d = i % (SLICE / 4) * 4;
        vec4 x = vec4(0.0);
        if (query0 + r < A.queries && d0 + d < D) {
          x = A.scale *
              load4(q, int64_t(query0 + r) * A.q_row + int64_t(d0 + d));
        }
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          pool[r * Q_ROW + d + e] = x[e];
        }
      }
      for (uint i = t; i < BK * SLICE / 4; i += WG) {
        uint r = i / (SLICE / 4);
        uint d = i % (SLICE / 4) * 4;
        vec4 x = vec4(0.0);
        if (key0 + r < key_end && d0 + d < D) {
          x = load4(k, int64_t(key0 + r) * A.k_row + int64_t(d0 + d));
        }
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          pool[K_BASE + r * K_ROW + d + e] = x[e];
        }
      }
#else
      for (uint i = t; i < BQ * SLICE; i += WG) {
        uint r = i / SLICE;
        uint d = i % SLICE;
        float x = 0.0;
        if (query0 + r < A.queries && d0 + d < D) {
          x = A.scale *
              load(q, int64_t(query0 + r) * A.q_row + int64_t(d0 + d));
        }
        pool[r * Q_ROW + d] = x;
      }
      for (uint i = t; i < BK * SLICE; i += WG) {
        uint r = i / SLICE;
        uint d = i % SLICE;
        float x = 0.0;
        if (key0 + r < key_end && d0 + d < D) {
          x = load(k, int64_t(key0 + r) * A.k_row + int64_t(d0 + d));
        }
        pool[K_BASE + r * K_ROW + d] = x;
      }
#endif
      barrier();
      // Past D the slices hold zeros.
      for (uint d8 = 0; d8 < SLICE; d8 += 8) {
        [[unroll]] for (uint e = 0; e < 8; ++e) {
          float qd[RQ];
          float kd[RK];
          [[unroll]] for (uint i = 0; i < RQ; ++i) {
            qd[i] = pool[(ty * RQ + i) * Q_ROW + d8 + e];
          }
          [[unroll]] for (uint j = 0; j < RK; ++j) {
            kd[j] = pool[K_BASE + (j * 16 + tx) * K_ROW + d8 + e];
          }
          [[unroll]] for (uint i = 0; i < RQ; ++i) {
            [[unroll]] for (uint j = 0; j < RK; ++j) {
              s[i * RK + j] = fma(qd[i], kd[j], s[i * RK + j]);
            }
          }
        }
      }
    }

    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      uint query = query0 + ty * RQ + i;
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        uint key = key0 + j * 16 + tx;
        float x = s[i * RK + j];
#if MASK
        if (query < A.queries && key < A.keys) {
          int64_t at = int64_t(batch) * A.m_batch + int64_t(head) * A.m_head +
              int64_t(query) * A.m_row + int64_t(key) * A.m_key;
          x = MASK_ITEM(x, at);
        }
#endif
#if CAUSAL
        if (key + A.queries > A.keys + query) {
          x = HIDDEN;
        }
#endif
        scores[(ty * RQ + i) * S_ROW + j * 16 + tx] =
            key < A.keys ? x : ABSENT;
      }
    }
    barrier();

    // The row's new maximum; scores become weights.
    float m = row_max;
    [[unroll]] for (uint i = 0; i < BK / LANES; ++i) {
      m = max(m, scores[soft_row * S_ROW + i * LANES + soft_lane]);
    }
    [[unroll]] for (uint o = 1; o < LANES; o *= 2) {
      m = max(m, subgroupShuffleXor(m, o));
    }
    float total = 0.0;
    [[unroll]] for (uint i = 0; i < BK / LANES; ++i) {
      uint j = i * LANES + soft_lane;
      float p = exp2_diff(scores[soft_row * S_ROW + j], m);
      scores[soft_row * S_ROW + j] = p;
      total += p;
    }
    [[unroll]] for (uint o = 1; o < LANES; o *= 2) {
      total += subgroupShuffleXor(total, o);
    }
    float keep = exp2_diff(row_max, m);
    row_sum = row_sum * keep + total;
    row_max = m;
    if (soft_lane == 0) {
      keep_row[soft_row] = keep;
    }
    barrier();

    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      float x = keep_row[ty * RQ + i];
      [[unroll]] for (uint j = 0; j < RV; ++j) {
        acc[i * RV + j] *= x;
      }
    }
    uint tile_keys = min(BK, key_end - key0);
    for (uint r0 = 0; r0 < tile_keys; r0 += V_ROWS) {
#if VEC
      for (uint i = t; i < V_ROWS * DV / 4; i += WG) {
        uint r = i / (DV / 4);
        uint d = i % (DV / 4) * 4;
        vec4 x = vec4(0.0);
        if (key0 + r0 + r < key_end) {
          x = load4(v, int64_t(key0 + r0 + r) * A.v_row + int64_t(d));
        }
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          pool[r * RV * 16 + d + e] = x[e];
        }
      }
#else
      for (uint i = t; i < V_ROWS * DV; i += WG) {
        uint r = i / DV;
        uint d = i % DV;
        float x = 0.0;
        if (key0 + r0 + r < key_end) {
          x = load(v, int64_t(key0 + r0 + r) * A.v_row + int64_t(d));
        }
        pool[r * RV * 16 + d] = x;
      }
#endif
      barrier();
      [[unroll]] for (uint r = 0; r < V_ROWS; ++r) {
        float p[RQ];
        [[unroll]] for (uint i = 0; i < RQ; ++i) {
          p[i] = scores[(ty * RQ + i) * S_ROW + r0 + r];
        }
        [[unroll]] for (uint j = 0; j < RV; ++j) {
          float x = pool[r * RV * 16 + j * 16 + tx];
          [[unroll]] for (uint i = 0; i < RQ; ++i) {
            acc[i * RV + j] = fma(p[i], x, acc[i * RV + j]);
          }
        }
      }
      barrier();
    }
  }

#if SINKS
  float sink = load(A.sinks, head) * LOG2E;
  float m = max(row_max, sink);
  float keep = exp2_diff(row_max, m);
  row_sum = row_sum * keep + exp2(sink - m);
#else
  float m = row_max;
  float keep = 1.0;
#endif
#if LSE
  if (soft_lane == 0 && query0 + soft_row < A.queries) {
    store(
        A.lse,
        (uint64_t(batch) * A.heads + head) * A.queries + query0 + soft_row,
        natural_lse(m, row_sum));
  }
#endif
  if (soft_lane == 0) {
    keep_row[soft_row] = keep;
    sum_row[soft_row] = row_sum;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    uint r = ty * RQ + i;
    uint query = query0 + r;
    uint64_t row = (uint64_t(batch) * A.queries + query) * A.heads + head;
    float total = sum_row[r];
    float factor = keep_row[r];
    [[unroll]] for (uint j = 0; j < RV; ++j) {
      uint d = j * 16 + tx;
      if (query < A.queries && d < DV) {
        float x = acc[i * RV + j] * factor;
        store(A.y, row * DV + d, total == 0.0 ? 0.0 : x / total);
      }
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.tiles * A.heads * A.batches) {
    attend(group);
  }
}
