// Eigenvalues of tridiagonal matrices, a team for each: by bisection with Sturm
// sequences (Golub & Van Loan, Matrix Computations, 8.4.1), determinants of
// the matrix less x up to each row. As many as are less than x change the sign.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK BisectArgs
#include "common/args.glsl"
#define WG_SIZE BISECT_GROUP
#include "common/lanes.glsl"

layout(local_size_x = WG_SIZE) in;

#define PLUS(a, b) ((a) + (b))
TEAM_REDUCE(team_sum, uint, PLUS, sums)

// A turn counts at so many points for each invocation, which takes hardly longer
// than at one: a row has to wait for the last.
const uint POINTS = 3;
// Squares beside the diagonal are at least LEAST, whose root is far below EPSILON: a
// row, a matrix times a pair of determinants, makes that smaller by no more than its
// own determinant over its norm, LEAST / (8 n^2), and PERIOD rows do not underflow.
#if FLOAT64
const uint PERIOD = 4;
#define LEAST 1e-40lf
#else
const uint PERIOD = 1;
#define LEAST 1e-18
#endif
#define FEW 8 // rows at once
#define EACH_POINT [[unroll]] for (uint p = 0; p < POINTS; ++p)

uint64_t diagonal;

// At how many points low + step, low + 2 step, ... of the invocation no more than n
// eigenvalues are less.
uint points_below(T low, T step_, uint n) {
  T last[POINTS], before[POINTS];
  bool negative[POINTS];
  uint count[POINTS];
  EACH_POINT {
    last[p] = 1.0;
    before[p] = 0.0;
    negative[p] = false;
    count[p] = 0;
  }
  for (uint start = 0; start < A.n; start += FEW) {
    [[unroll]] for (uint k = 0; k < FEW; ++k) {
      bool more = start + k < A.n;
      uint64_t i = diagonal + min(start + k, A.n - 1);
      T d = load(A.diagonals, i), square = load(A.diagonals, i + A.n - 1);
      square = max(square * square, LEAST);
      EACH_POINT {
        T x = low + step_ * T(p + 1);
        T next = (d - x) * last[p] - square * before[p];
        count[p] += more && (next < 0.0) != negative[p] ? 1 : 0;
        negative[p] = next < 0.0;
        before[p] = last[p];
        last[p] = next;
        if ((k + 1) % PERIOD == 0) {
          T scale = inverse_power(max(abs(before[p]), abs(next))); // about
          before[p] *= scale;
          last[p] *= scale;
        }
      }
    }
  }
  uint points = 0;
  EACH_POINT points += count[p] <= n ? 1 : 0;
  return points;
}

void main() {
  uint matrix = min(group_index() / A.groups, A.count - 1);
  uint i = group_index() % A.groups * TEAMS + TEAM;
  diagonal = uint64_t(matrix) * 2 * A.n;
  T low = -2.0 * A.n, step_ = 4.0 * A.n;
  for (uint turn = 0; step_ > EPSILON; ++turn) { // uniform
    step_ /= T(POINTS * LANES + 1);
    T first = low + step_ * T(POINTS * LANE);
    low += step_ * T(team_sum(points_below(first, step_, i)));
  }
  if (group_index() / A.groups < A.count && LANE == 0 && i < A.n) {
    T value = low + step_ / 2.0;
    store(A.s, uint64_t(matrix) * A.n + i, value * load(A.scales, matrix));
  }
}
