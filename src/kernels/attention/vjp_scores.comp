// Recomputes attention's weights p = softmax(scale q k^T) and the gradient of
// scores ds = scale p (dO v^T - delta); both products stay in float registers.
// A workgroup takes 32 queries and 64 keys.
#define BQ 32
#include "attention/vjp_scores.glsl"
#include "attention/slices.glsl"

layout(local_size_x = WG) in;

Rows query_rows(Tile tile, T_PTR p, HeadStrides s) {
  uint64_t x = uint64_t(AT_HEAD(p, s, tile.batch, tile.head));
  return Rows(x, s.row, tile.q0, tile.q_end);
}

Rows key_rows(Tile tile, T_PTR p, HeadStrides s) {
  uint64_t x = uint64_t(AT_HEAD(p, s, tile.batch, tile.kv_head));
  return Rows(x, s.row, tile.k0, tile.k_end);
}

void differentiate(Tile tile) {
  float s[RQ * RK];
  float dp[RQ * RK];
  [[unroll]] for (uint i = 0; i < RQ * RK; ++i) {
    s[i] = 0.0;
    dp[i] = 0.0;
  }
  if (!all_hidden(tile)) {
    multiply(
        s,
        query_rows(tile, A.q, A.q_strides),
        key_rows(tile, A.k, A.k_strides),
        A.dim,
        1.0);
    multiply(
        dp,
        query_rows(tile, A.cotan, A.cotan_strides),
        key_rows(tile, A.v, A.v_strides),
        A.value_dim,
        1.0);
  }

  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    uint query = tile.q0 + TY * RQ + i;
    if (query < tile.q_end) {
      Row row = row_of(tile, query);
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        uint key = tile.k0 + j * 16 + TX;
        if (key < tile.k_end) {
          vec2 y = weight_and_gradient(row, key, s[i * RK + j], dp[i * RK + j]);
          store(A.p, row.at + (key - A.key0), y.x);
          store(A.ds, row.at + (key - A.key0), y.y);
        }
      }
    }
  }
}
