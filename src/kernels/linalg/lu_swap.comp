// The row exchanges of a block column, applied to other columns, of which a
// workgroup has a few, and to the places of rows. Rows count from the block's
// first.
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuSwapArgs
#include "common/args.glsl"

#define GROUP LU_SWAP_GROUP
layout(local_size_x = GROUP) in;

shared uint pivot[BLOCK];
shared uint target[2 * BLOCK]; // of the first rows, and of the pivots
shared T held[GROUP];

// Where the row at this place goes.
uint moved(uint place) {
  for (uint i = 0; i < A.width; ++i) {
    place = place == i ? pivot[i] : place == pivot[i] ? i : place;
  }
  return place;
}

void main() {
  uint group = group_index();
  bool mine = group / A.groups < A.count;
  uint matrix = min(group / A.groups, A.count - 1);
  uint local = gl_LocalInvocationIndex;
  if (local < A.width) {
    int64_t at = matrix * A.pivot_batch + (A.first + local);
    pivot[local] = load(A.pivots, at) - A.first;
  }
  barrier();
  // An invocation for each of the first rows, and one for each pivot.
  uint column = group % A.groups * (GROUP / (2 * BLOCK)) + local / (2 * BLOCK);
  uint i = local % BLOCK, slot = local % (2 * BLOCK);
  bool moves = mine && i < A.width;
  bool in_y = moves && column < A.done;
  bool in_rest = moves && !in_y && column - A.done < A.columns;
  uint from = slot < BLOCK ? i : pivot[i];
  if (local == slot && i < A.width) {
    target[slot] = moved(from);
  }
  int64_t y = matrix * A.ys.batch + column * A.ys.col;
  int64_t rest = matrix * A.rests.batch + (column - A.done) * A.rests.col;
  T v = load(A.y, in_y ? y + from * A.ys.row : 0);
  T w = load(A.rest, in_rest ? rest + from * A.rests.row : 0);
  held[local] = in_y ? v : w; // loaded before others store
  barrier();
  if (in_y) {
    store(A.y, y + target[slot] * A.ys.row, held[local]);
  }
  if (in_rest) {
    store(A.rest, rest + target[slot] * A.rests.row, held[local]);
  }
  uint row = group % A.groups * GROUP + local;
  if (A.first > 0 && mine && row < A.rows) {
    uint64_t at = uint64_t(matrix) * A.rows + row;
    store(A.places, at, moved(load(A.places, at) - A.first) + A.first);
  }
}
