// Sorts the columns of a stack by their lengths, a workgroup for each; equal ones
// keep their order.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK FinishArgs
#include "common/args.glsl"

layout(local_size_x = 64) in;

shared uint rank;

void work(uint matrix, uint col) {
  uint local = gl_LocalInvocationIndex;
  uint64_t first = uint64_t(matrix) * A.rows;
  T length_ = load(A.lengths, first + col);
  if (local == 0) {
    rank = 0;
  }
  barrier();
  for (uint i = local; i < A.n; i += 64) {
    T other = load(A.lengths, first + i);
    bool before = SYMMETRIC != 0 ? other < length_ : other > length_;
    if (before || (other == length_ && i < col)) {
      atomicAdd(rank, 1u);
    }
  }
  barrier();
  T back = load(A.scales, 2 * matrix);
  T less = load(A.scales, 2 * matrix + 1);
  if (local == 0) {
    store(A.s, uint64_t(matrix) * A.n + rank, (length_ - less) * back);
  }
#if VECTORS
  uint64_t from = (first + col) * A.lines;
  for (uint row = local; row < A.n; row += 64) {
    T x = load(A.stack, from + row);
    int64_t v = matrix * A.vs.batch + row * A.vs.row + rank * A.vs.col;
#if SYMMETRIC
    T vector = x / length_;
#else
    T vector = load(A.stack, from + (A.rows + row));
    int64_t y = matrix * A.ys.batch + row * A.ys.row + rank * A.ys.col;
    store(A.y, y, x * back);
#endif
    store(A.v, v, is_nan(back) ? back : vector);
  }
#endif
}

void main() {
  uint matrix = group_index() / A.n;
  if (matrix < A.count) { // uniform
    work(matrix, group_index() % A.n);
  }
}
