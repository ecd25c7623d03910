// Sorts eigenvectors by their eigenvalues, a workgroup for each; equal ones keep
// their order.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK SortedArgs
#include "common/args.glsl"
#define GROUPS A.n
#include "linalg/per_matrix.glsl"

layout(local_size_x = 64) in;

shared uint rank;

void work(uint matrix, uint col) {
  uint local = gl_LocalInvocationIndex;
  uint64_t first = uint64_t(matrix) * A.rows;
  T value = load(A.values, first + col);
  if (local == 0) {
    rank = 0;
  }
  barrier();
  for (uint i = local; i < A.n; i += 64) {
    T other = load(A.values, first + i);
    if (other < value || (other == value && i < col)) {
      atomicAdd(rank, 1u);
    }
  }
  barrier();
  T back = load(A.scales, matrix);
  if (local == 0) {
    store(A.s, uint64_t(matrix) * A.n + rank, value * back);
  }
  for (uint row = local; row < A.n; row += 64) {
    T x = load(A.q, (first + row) * A.rows + col);
    int64_t v = matrix * A.vs.batch + row * A.vs.row + rank * A.vs.col;
    store(A.v, v, is_nan(back) ? back : x);
  }
}
