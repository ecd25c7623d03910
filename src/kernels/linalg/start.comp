// The stack of a square matrix, scaled. A SYMMETRIC one is shifted by 1.5 times its
// Frobenius norm, so that it is positive definite.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK StartArgs
#include "common/args.glsl"
#define LANES 256
#include "common/lanes.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = LANES) in;

#define PLUS(a, b) ((a) + (b))
TEAM_REDUCE(group_sum, T, PLUS, sums)
TEAM_REDUCE(group_max, T, max, maxima)

T item(uint matrix, uint row, uint col) {
  uint r = SYMMETRIC != 0 ? max(row, col) : row;
  uint c = SYMMETRIC != 0 ? min(row, col) : col;
  return load(A.x, matrix * A.xs.batch + r * A.xs.row + c * A.xs.col);
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
  T most = 0.0, sum = 0.0;
  for (uint i = local; i < A.n * A.n; i += LANES) {
    T v = item(matrix, i % A.n, i / A.n);
    most = is_finite(v) ? max(most, abs(v)) : T(INF_F);
  }
  most = group_max(most);
  bool finite = is_finite(most);
  T scale = finite ? scale_of(most) : T(0.0);
#if SYMMETRIC
  for (uint i = local; i < A.n * A.n; i += LANES) {
    T v = item(matrix, i % A.n, i / A.n) * scale;
    sum += v * v;
  }
  sum = group_sum(sum);
#endif
  T shift = sum > 0.0 ? 1.5 * sqrt(sum) : T(SYMMETRIC);
  if (local == 0) {
    store(A.scales, 2 * matrix, finite ? inverse_power(scale) : T(NAN_F));
    store(A.scales, 2 * matrix + 1, shift);
  }
  uint64_t stack = uint64_t(matrix) * A.rows * A.lines;
  for (uint i = local; i < A.rows * A.lines; i += LANES) {
    uint row = i % A.lines, col = i / A.lines;
    T v = row == A.rows + col ? 1.0 : 0.0;
    if (row < A.n && col < A.n) {
      v = row == col ? shift : T(0.0);
      v += finite ? item(matrix, row, col) * scale : T(0.0);
    }
    store(A.stack, stack + i, v);
  }
}
