// Common part of vjp_scores.comp and vjp_scores_coopmat.comp, over tiles of BQ
// queries and BK keys. The including kernel defines differentiate(), which
// processes a tile.
#pragma once

#include "common/types.glsl"
#include "attention/vjp_scores.h"
#define ARGS_BLOCK ScoresArgs
#include "common/args.glsl"
#include "attention/mask.glsl"

#define BK 64

struct Tile {
  uint batch, head, kv_head;
  uint q0, q_end, k0, k_end; // queries and keys, up to the end of the chunk
};

void differentiate(Tile tile);

Tile tile_of(uint group) {
  uint key_tile = group % A.key_tiles;
  uint rest = group / A.key_tiles;
  uint query_tile = rest % A.query_tiles;
  rest /= A.query_tiles;
  Tile tile;
  tile.head = rest % A.heads;
  tile.batch = rest / A.heads;
  tile.kv_head = tile.head / (A.heads / A.kv_heads);
  tile.q0 = A.query0 + query_tile * BQ;
  tile.k0 = A.key0 + key_tile * BK;
  tile.q_end = A.query0 + A.query_count;
  tile.k_end = A.key0 + A.key_count;
  return tile;
}

// Whether the causal mask hides all keys of the tile from all of its queries,
// and no row lacks visible keys.
bool all_hidden(Tile tile) {
#if CAUSAL
  return A.keys >= A.queries &&
      tile.k0 + A.queries >= A.keys + (tile.q0 + BQ);
#else
  return false;
#endif
}

// Upper bound of lse of a row without visible keys: HIDDEN dominates the
// logarithm of the number of keys.
#define HIDDEN_ROW (-1e38)

struct Row {
  uint batch, head, query; // query: index among all queries
  float lse, delta;
  uint64_t at; // index of the chunk's first key, in p and ds
};

Row row_of(Tile tile, uint query) {
  int64_t at = head_offset(A.lse_strides, tile.batch, tile.head) +
      int64_t(query);
  return Row(
      tile.batch,
      tile.head,
      query,
      load(A.lse, at),
      load(A.delta, at),
      (uint64_t(tile.batch * A.heads + tile.head) * A.query_count +
       (query - A.query0)) * A.pitch);
}

// The weight and the gradient of the score, from s = q k^T and dp = dO v^T.
vec2 weight_and_gradient(Row row, uint key, float s, float dp) {
  float x = s * (A.scale * LOG2E);
  bool hidden = false;
#if MASK == 1
  hidden = !load(
      A.mask,
      mask_offset(A.mask_strides, row.batch, row.head, row.query, key));
#else
  x = masked(x, row.batch, row.head, row.query, key);
#endif
  hidden = hidden || is_later(key, row.query);
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

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.key_tiles * A.query_tiles * A.heads * A.batches) {
    differentiate(tile_of(group));
  }
}
