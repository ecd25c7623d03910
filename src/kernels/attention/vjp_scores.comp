// variants: T=f32,f16,bf16 VEC=0,1 MASK=0 CAUSAL=0,1; T=f32 VEC=0 MASK=1,2 CAUSAL=0
//
// Attention's weights p = softmax(scale q k^T), again, and their scores'
// gradient ds = scale p (dO v^T - delta): both products are summed in float
// and never stored. A workgroup takes 32 queries and 64 keys; 8 x 16
// invocations own 4 x 4 of them each.
#extension GL_EXT_control_flow_attributes : enable
#include "common/types.glsl"
#include "gemm/vec.glsl"
#include "attention/vjp.glsl"

#define WG 128
layout(local_size_x = WG) in;

#define BQ 32
#define BK 64
#define SLICE 32
#define PITCH (SLICE + 1) // against bank conflicts
#define RQ (BQ / 8)
#define RK (BK / 16)
#define B_BASE (BQ * PITCH)
shared float pool[(BQ + BK) * PITCH];

// Rows from `first` to `end` of x, columns d0 to d0 + SLICE, into the pool;
// zeros outside.
void fetch(
    uint to,
    uint rows,
    T_PTR x,
    int64_t pitch,
    uint first,
    uint end,
    uint d0,
    uint dim) {
  uint t = gl_LocalInvocationIndex;
#if VEC
  for (uint i = t; i < rows * (SLICE / 4); i += WG) {
    uint r = i / (SLICE / 4);
    uint d = i % (SLICE / 4) * 4;
    vec4 y = vec4(0.0);
    if (first + r < end && d0 + d < dim) {
      y = load4(x, int64_t(first + r) * pitch + int64_t(d0 + d));
    }
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      pool[to + r * PITCH + d + e] = y[e];
    }
  }
#else
  for (uint i = t; i < rows * SLICE; i += WG) {
    uint r = i / SLICE;
    uint d = i % SLICE;
    float y = 0.0;
    if (first + r < end && d0 + d < dim) {
      y = load(x, int64_t(first + r) * pitch + int64_t(d0 + d));
    }
    pool[to + r * PITCH + d] = y;
  }
#endif
}

// acc += a b^T, for slices in the pool.
void multiply(inout float acc[RQ * RK]) {
  uint tx = gl_LocalInvocationIndex % 16;
  uint ty = gl_LocalInvocationIndex / 16;
  for (uint d8 = 0; d8 < SLICE; d8 += 8) {
    [[unroll]] for (uint e = 0; e < 8; ++e) {
      float a[RQ];
      float b[RK];
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        a[i] = pool[(ty * RQ + i) * PITCH + d8 + e];
      }
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        b[j] = pool[B_BASE + (j * 16 + tx) * PITCH + d8 + e];
      }
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        [[unroll]] for (uint j = 0; j < RK; ++j) {
          acc[i * RK + j] = fma(a[i], b[j], acc[i * RK + j]);
        }
      }
    }
  }
}

void differentiate(uint group) {
  uint key_tile = group % A.key_tiles;
  uint rest = group / A.key_tiles;
  uint query_tile = rest % A.query_tiles;
  rest /= A.query_tiles;
  uint head = rest % A.heads;
  uint batch = rest / A.heads;
  uint kv_head = head / (A.heads / A.kv_heads);
  uint q0 = A.query0 + query_tile * BQ;
  uint k0 = A.key0 + key_tile * BK;
  uint q_end = A.query0 + A.query_count;
  uint k_end = A.key0 + A.key_count;

  float s[RQ * RK];
  float dp[RQ * RK];
  [[unroll]] for (uint i = 0; i < RQ * RK; ++i) {
    s[i] = 0.0;
    dp[i] = 0.0;
  }
  if (!all_hidden(q0 + BQ, k0)) {
    T_PTR q =
        moved(A.q, int64_t(batch) * A.q_batch + int64_t(head) * A.q_head);
    T_PTR k =
        moved(A.k, int64_t(batch) * A.k_batch + int64_t(kv_head) * A.k_head);
    for (uint d0 = 0; d0 < A.dim; d0 += SLICE) {
      barrier();
      fetch(0, BQ, q, A.q_row, q0, q_end, d0, A.dim);
      fetch(B_BASE, BK, k, A.k_row, k0, k_end, d0, A.dim);
      barrier();
      multiply(s);
    }
    T_PTR c =
        moved(A.cotan, int64_t(batch) * A.c_batch + int64_t(head) * A.c_head);
    T_PTR v =
        moved(A.v, int64_t(batch) * A.v_batch + int64_t(kv_head) * A.v_head);
    for (uint d0 = 0; d0 < A.value_dim; d0 += SLICE) {
      barrier();
      fetch(0, BQ, c, A.c_row, q0, q_end, d0, A.value_dim);
      fetch(B_BASE, BK, v, A.v_row, k0, k_end, d0, A.value_dim);
      barrier();
      multiply(dp);
    }
  }

  uint tx = gl_LocalInvocationIndex % 16;
  uint ty = gl_LocalInvocationIndex / 16;
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    uint query = q0 + ty * RQ + i;
    if (query < q_end) {
      Row row = row_of(batch, head, query);
      uint64_t at = (uint64_t(batch * A.heads + head) * A.query_count +
                     (query - A.query0)) * A.pitch;
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        uint key = k0 + j * 16 + tx;
        if (key < k_end) {
          vec2 y = weigh(row, key, s[i * RK + j], dp[i * RK + j]);
          store(A.p, at + (key - A.key0), y.x);
          store(A.ds, at + (key - A.key0), y.y);
        }
      }
    }
  }
}

void main() {
  uint group = group_index();
  // Uniform over the workgroup.
  if (group < A.key_tiles * A.query_tiles * A.heads * A.batches) {
    differentiate(group);
  }
}
