// Loads and products of decode.comp for K, V and q stored as items.
#pragma once

RAW load_raw(T_PTR row, uint item, bool has) {
  RAW x = RAW(0);
  if (has) {
    x = RAW_AT(MOVED(T, row, item));
  }
  return x;
}
#define LOAD_RAW(row, j, N) load_raw(row, ITEM(j), HAS(j, N))

#define KEY_ROW(head, strides, base, u)                                       \
  MOVED(                                                                      \
      T,                                                                      \
      head,                                                                   \
      int64_t(min(KEY(base, u), end_key - 1)) * int64_t(strides.row))
#define LOAD_K(base, u, j)                                                    \
  LOAD_RAW(KEY_ROW(k_head, A.k_strides, base, u), j, D)
#define LOAD_V(base, u, j)                                                    \
  LOAD_RAW(KEY_ROW(v_head, A.v_strides, base, u), j, DV)

#if SHARED_Q && VEC
#define QUERY_UNITS 1.0
#include "attention/queries.glsl"
#elif SHARED_Q
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

void begin_head(Rows w) {
  k_head = uint64_t(A.k) +
      uint64_t((int64_t(w.batch) * A.k_strides.batch +
                int64_t(w.kv_head) * A.k_strides.head) * T_SIZE);
  v_head = uint64_t(A.v) +
      uint64_t((int64_t(w.batch) * A.v_strides.batch +
                int64_t(w.kv_head) * A.v_strides.head) * T_SIZE);
}

// Loads KU rows of a lane, CLUSTERS apart. Only a range that passes the last
// row computes each address separately.
#define LOAD_ROWS(x, PIECES_, LOAD, head, strides, N)                         \
  if (base + CLUSTERS * KU <= end_key) {                                      \
    int64_t step = int64_t(strides.row) * (CLUSTERS * T_SIZE);                \
    int64_t at = int64_t(head) +                                              \
        int64_t(base + CLUSTER) * int64_t(strides.row) * T_SIZE;              \
    [[unroll]] for (uint u = 0; u < KU; ++u) {                                \
      [[unroll]] for (uint j = 0; j < PIECES_; ++j) {                         \
        x[u * PIECES_ + j] = LOAD_RAW(T_PTR(uint64_t(at)), j, N);             \
      }                                                                       \
      at += step;                                                             \
    }                                                                         \
  } else {                                                                    \
    [[unroll]] for (uint u = 0; u < KU; ++u) {                                \
      [[unroll]] for (uint j = 0; j < PIECES_; ++j) {                         \
        x[u * PIECES_ + j] = LOAD(base, u, j);                                \
      }                                                                       \
    }                                                                         \
  }

void load_keys(uint base) {
#if !PIECES
  LOAD_ROWS(k, CHUNKS, LOAD_K, k_head, A.k_strides, D)
#endif
}

void load_values(uint base) {
#if !PIECES
  LOAD_ROWS(v, CHUNKS_V, LOAD_V, v_head, A.v_strides, DV)
#endif
}

#if SHARED_Q && VEC
#define load_queries share_queries
#else
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
    // Advance to the next row; beyond the last row, repeat it.
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
#endif

// Items from i * STEP on in chunk j of a query row.
FLOATS query_items(uint r, uint j, uint i) {
#if SHARED_Q && VEC
  vec4 x = QUERY_FOUR(r, j, i / 2);
  return i % 2 == 0 ? x.xy : x.zw;
#elif SHARED_Q
  return queries[r * D + min(ITEM(j), D - 1)];
#else
  return floats(q[r * CHUNKS + j], i);
#endif
}

// The lane's partial sums of all scores of a cluster.
void multiply_keys(uint base, out float s[ROWS * KU]) {
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

#define keep_values(r, x)
#define finish_values()
