// Eigenvalues of tridiagonal matrices, an invocation for each: by bisection with
// counts of the negative pivots (Golub & Van Loan, Matrix Computations, 8.4.1).
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK BisectArgs
#include "common/args.glsl"

#define GROUP 64
layout(local_size_x = GROUP) in;

// Bounds, up to 2 n, are halved until their distance is EPSILON.
#if FLOAT64
const uint MOST_TURNS = 80;
#else
const uint MOST_TURNS = 48;
#endif

uint64_t diagonal;

// How many eigenvalues are less than x. Pivots are not taken for smaller than a
// number that no square over it exceeds the largest number.
uint below(T x) {
  T pivot = 1.0, square = 0.0;
  uint count = 0;
  for (uint i = 0; i < A.n; ++i) {
    pivot = (load(A.diagonals, diagonal + i) - x) - square / pivot;
    pivot = abs(pivot) < T(1e-25) ? T(-1e-25) : pivot;
    count += pivot < 0.0 ? 1 : 0;
    square = load(A.diagonals, diagonal + A.n + min(i, A.n - 2));
    square *= square;
  }
  return count;
}

void main() {
  uint matrix = group_index() / A.groups;
  uint i = group_index() % A.groups * GROUP + gl_LocalInvocationIndex;
  if (matrix < A.count && i < A.n) {
    diagonal = uint64_t(matrix) * 2 * A.n;
    T high = 2.0 * A.n, low = -high;
    for (uint turn = 0; turn < MOST_TURNS; ++turn) {
      T middle = (low + high) / 2.0;
      bool left = below(middle) > i;
      low = left ? low : middle;
      high = left ? middle : high;
      if (high - low <= EPSILON * max(abs(middle), T(1.0))) {
        break;
      }
    }
    store(A.s, uint64_t(matrix) * A.n + i, (low + high) / 2.0 *
        load(A.scales, matrix));
  }
}
