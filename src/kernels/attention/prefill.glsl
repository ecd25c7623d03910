// What prefill.comp and prefill_coopmat.comp share, for tiles of BQ queries of
// one head: attend(tile) does one.
#ifndef ATTENTION_PREFILL_GLSL
#define ATTENTION_PREFILL_GLSL

#include "common/types.glsl"
#include "attention/prefill.h"
#define ARGS_BLOCK PrefillArgs
#include "common/args.glsl"
#include "attention/mask.glsl"

struct Tile {
  uint batch, head, kv_head;
  uint query0; // the first of its queries
  uint key_end; // none of them sees keys from here on
};

void attend(Tile tile);

// Late tiles see the most keys under a causal mask: those of all heads start first,
// so that short ones fill what is left at the end.
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
  // Without enough keys the first rows see none, and average all.
  if (A.keys >= A.queries) {
    tile.key_end =
        min(A.keys, tile.query0 + BQ + (A.keys - A.queries));
  }
#endif
  return tile;
}

// A score with masks; also for queries and keys beyond the last.
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
  // Uniform over the workgroup.
  if (group < A.tiles * A.heads * A.batches) {
    attend(tile_of(group));
  }
}

#endif
