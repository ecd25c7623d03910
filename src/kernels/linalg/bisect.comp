// Eigenvalues of tridiagonal matrices, an invocation for each: by bisection with
// counts of the negative pivots (Golub & Van Loan, Matrix Computations, 8.4.1).
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK BisectArgs
#include "common/args.glsl"

#define GROUP 64
layout(local_size_x = GROUP) in;

// A turn counts at so many points between the bounds, which takes hardly longer
// than at one: a division has to wait for the last.
const uint POINTS = 3;
// Bounds, up to 2 n, come as close as EPSILON.
#if FLOAT64
const uint MOST_TURNS = 80;
#else
const uint MOST_TURNS = 48;
#endif
#define EACH_POINT [[unroll]] for (uint p = 0; p < POINTS; ++p)

uint64_t diagonal;

// At how many points low + step, low + 2 step, ... no more than n eigenvalues are
// less. Pivots are not so small that a square over one exceeds the largest number.
uint points_below(T low, T step_, uint n) {
  T pivot[POINTS], square = 0.0;
  uint count[POINTS];
  EACH_POINT {
    pivot[p] = 1.0;
    count[p] = 0;
  }
  for (uint i = 0; i < A.n; ++i) {
    T d = load(A.diagonals, diagonal + i);
    EACH_POINT {
      T x = (d - (low + step_ * T(p + 1))) - square / pivot[p];
      pivot[p] = abs(x) < T(1e-25) ? T(-1e-25) : x;
      count[p] += pivot[p] < 0.0 ? 1 : 0;
    }
    square = load(A.diagonals, diagonal + A.n + min(i, A.n - 2));
    square *= square;
  }
  uint points = 0;
  EACH_POINT points += count[p] <= n ? 1 : 0;
  return points;
}

void main() {
  uint matrix = group_index() / A.groups;
  uint i = group_index() % A.groups * GROUP + gl_LocalInvocationIndex;
  if (matrix < A.count && i < A.n) {
    diagonal = uint64_t(matrix) * 2 * A.n;
    T low = -2.0 * A.n, step_ = 4.0 * A.n / (POINTS + 1);
    for (uint turn = 0; turn < MOST_TURNS; ++turn) {
      low += step_ * T(points_below(low, step_, i));
      if (step_ <= EPSILON * max(abs(low), T(1.0))) {
        break;
      }
      step_ /= T(POINTS + 1);
    }
    T value = low + step_ / 2.0;
    store(A.s, uint64_t(matrix) * A.n + i, value * load(A.scales, matrix));
  }
}
