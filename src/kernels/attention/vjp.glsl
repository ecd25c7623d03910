// What the kernels of attention's backward pass share: their arguments, and
// weights and score gradients from scores.
#ifndef ATTENTION_VJP_GLSL
#define ATTENTION_VJP_GLSL

#define SINKS 0
#include "attention/mask.glsl"

// Mirrors VjpParams in ops/attention/params.h. Query and key numbers count
// from the chunk's first; p and ds are (batch, head, query, key) of the chunk,
// their rows `pitch` items apart.
#define ARGS                                                                  \
  T_PTR q; T_PTR k; T_PTR v; MASK_POINTER T_PTR cotan;                        \
  Ptr_f32 lse; Ptr_f32 delta; T_PTR p; T_PTR ds;                              \
  uint batches; uint heads; uint kv_heads; uint queries; uint keys;           \
  uint dim; uint value_dim; uint pitch;                                       \
  uint query0; uint query_count; uint key0; uint key_count;                   \
  uint query_tiles; uint key_tiles; float scale; uint pad;                    \
  int64_t q_batch; int64_t q_head; int64_t q_row;                             \
  int64_t k_batch; int64_t k_head; int64_t k_row;                             \
  int64_t v_batch; int64_t v_head; int64_t v_row;                             \
  int64_t c_batch; int64_t c_head; int64_t c_row;                             \
  int64_t r_batch; int64_t r_head;                                            \
  int64_t m_batch; int64_t m_head; int64_t m_row; int64_t m_key;
#include "common/args.glsl"

// Rows whose every key is hidden: their lse drowns the number of keys.
#define HIDDEN_ROW (-1e38)

struct Row {
  uint batch, head, query; // query: of all
  float lse, delta;
};

Row row_of(uint batch, uint head, uint query) {
  int64_t at =
      int64_t(batch) * A.r_batch + int64_t(head) * A.r_head + int64_t(query);
  return Row(batch, head, query, load(A.lse, at), load(A.delta, at));
}

// The weight and the score's gradient, for s = q k^T and dp = dO v^T.
vec2 weigh(Row row, uint key, float s, float dp) {
  float x = s * (A.scale * LOG2E);
  bool hidden = false;
#if MASK
  int64_t at = int64_t(row.batch) * A.m_batch +
      int64_t(row.head) * A.m_head + int64_t(row.query) * A.m_row +
      int64_t(key) * A.m_key;
#if MASK == 1
  hidden = !load(A.mask, at);
#else
  x = MASK_ITEM(x, at);
#endif
#endif
#if CAUSAL
  hidden = hidden || key + A.queries > A.keys + row.query;
#endif
  float p = exp2(x - row.lse * LOG2E);
  if (row.lse == ABSENT) {
    p = 0.0;
  } else if (row.lse < HIDDEN_ROW) {
    p = 1.0 / float(A.keys);
  } else if (hidden) {
    p = 0.0;
  }
  return vec2(p, hidden ? 0.0 : p * (dp - row.delta) * A.scale);
}

// No key of this tile is seen by any query of it, nor are rows without keys.
bool all_hidden(uint query_end, uint key_begin) {
#if CAUSAL
  return A.keys >= A.queries && key_begin + A.queries >= A.keys + query_end;
#else
  return false;
#endif
}

T_PTR moved(T_PTR p, int64_t items) {
  return T_PTR(uint64_t(p) + uint64_t(items * T_SIZE));
}

#endif
