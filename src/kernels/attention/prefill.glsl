// Common part of prefill kernels, over tiles of BQ queries of one head. The
// including kernel defines attend(), which processes a tile.
#pragma once

#include "common/types.glsl"
#include "attention/prefill.h"
#define ARGS_BLOCK PrefillArgs
#include "common/args.glsl"
#include "attention/mask.glsl"
#if HALVES
#include "attention/halves.glsl"
#endif

struct Tile {
  uint batch, head, kv_head;
  uint query0; // first query
  uint key_end; // end of the keys visible to any query of the tile
};

void attend(Tile tile);

// Under a causal mask, late tiles see the most keys. They start first, for all
// heads, so that short tiles fill the end of the dispatch.
Tile tile_of(uint group) {
  Tile tile;
#if CAUSAL
  uint others = A.heads * A.batches;
  uint other = group % others;
  tile.query0 = (A.tiles - 1 - group / others) * BQ;
#else
  uint other = group / A.tiles;
  tile.query0 = group % A.tiles * BQ;
#endif
  tile.head = other % A.heads;
  tile.batch = other / A.heads;
  tile.kv_head = tile.head / (A.heads / A.kv_heads);
  tile.key_end = A.keys;
#if CAUSAL
  // With fewer keys than queries the first rows see no key and average all
  // values.
  if (A.keys >= A.queries) {
    tile.key_end =
        min(A.keys, tile.query0 + BQ + (A.keys - A.queries));
  }
#endif
  return tile;
}

// The masked score, valid also for queries and keys out of range.
float final_score(Tile tile, uint query, uint key, float s) {
#if MASK
  if (query < A.queries && key < A.keys) {
    s = masked(s, tile.batch, tile.head, query, key);
  }
#endif
  if (is_later(key, query)) {
    s = HIDDEN;
  }
  return key < A.keys ? s : ABSENT;
}

void main() {
  uint group = group_index();
  // The condition is uniform in the workgroup.
  if (group < A.tiles * A.heads * A.batches) {
#if HALVES
    Tile tile = tile_of(group);
    if (take_ranges(tile.batch, tile.kv_head) == TAKES_EXACT) {
      attend(tile);
    }
#else
    attend(tile_of(group));
#endif
  }
}
