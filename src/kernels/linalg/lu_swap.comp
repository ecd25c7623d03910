// The row exchanges of a block column, applied to the others, of which a
// workgroup has a few, and to the places of rows.
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuSwapArgs
#include "common/args.glsl"

#define GROUP LU_SWAP_GROUP
layout(local_size_x = GROUP) in;

shared uint pivot[BLOCK];
shared uint target[2 * BLOCK]; // of the first rows, and of the pivots

// Where the row at this place goes.
uint moved(uint place) {
  for (uint i = 0; i < A.width; ++i) {
    uint top = A.first + i;
    place = place == top ? pivot[i] : place == pivot[i] ? top : place;
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
    pivot[local] = load(A.pivots, at);
  }
  barrier();
  // An invocation for each of the first rows, and one for each pivot.
  uint column = group % A.groups * (GROUP / (2 * BLOCK)) + local / (2 * BLOCK);
  column += column >= A.first ? A.done : 0;
  uint i = local % BLOCK, slot = local % (2 * BLOCK);
  bool moves = mine && column < A.columns && i < A.width;
  uint from = slot < BLOCK ? A.first + i : pivot[i];
  if (local == slot && i < A.width) {
    target[slot] = moved(from);
  }
  int64_t at = matrix * A.ys.batch + column * A.ys.col;
  T v = load(A.y, moves ? at + from * A.ys.row : 0);
  memoryBarrierBuffer();
  barrier();
  if (moves) {
    store(A.y, at + target[slot] * A.ys.row, v);
  }
  uint row = group % A.groups * GROUP + local;
  if (A.first > 0 && mine && row < A.rows) {
    uint64_t i = uint64_t(matrix) * A.rows + row;
    store(A.places, i, moved(load(A.places, i)));
  }
}
