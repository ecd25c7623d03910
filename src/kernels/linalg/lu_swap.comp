// The row exchanges of a block column, applied to the other columns and to the
// permutation: an invocation for each.
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK LuSwapArgs
#include "common/args.glsl"

#define GROUP 64
layout(local_size_x = GROUP) in;

shared uint pivot[BLOCK];

void main() {
  uint group = group_index();
  bool mine = group / A.groups < A.count;
  uint matrix = min(group / A.groups, A.count - 1);
  uint local = gl_LocalInvocationIndex;
  if (local < A.width) {
    pivot[local] =
        load(A.pivots, matrix * A.pivot_batch + (A.first + local));
  }
  barrier();
  uint column = group % A.groups * GROUP + local;
  if (mine && column == A.columns) {
    int64_t at = matrix * A.perm_batch;
    for (uint i = 0; i < A.width; ++i) {
      uint here = load(A.perm, at + (A.first + i));
      uint there = load(A.perm, at + pivot[i]);
      store(A.perm, at + (A.first + i), there);
      store(A.perm, at + pivot[i], here);
    }
  }
  bool other = column < A.first || column >= A.first + A.width;
  if (mine && column < A.columns && other) {
    int64_t at = matrix * A.ys.batch + column * A.ys.col;
    for (uint i = 0; i < A.width; ++i) {
      int64_t a = at + (A.first + i) * A.ys.row;
      int64_t b = at + pivot[i] * A.ys.row;
      T here = load(A.y, a);
      T there = load(A.y, b);
      store(A.y, a, there);
      store(A.y, b, here);
    }
  }
}
