// A whole symmetric matrix from its lower triangle, scaled; a workgroup has a
// row. The first column begins the reduction to a tridiagonal matrix.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK SymmetricArgs
#include "common/args.glsl"
#define GROUPS A.n
#include "linalg/per_matrix.glsl"

#define LANES 256
#include "common/lanes.glsl"

layout(local_size_x = LANES) in;

TEAM_REDUCE(group_max, T, max, maxima)

T item(uint matrix, uint row, uint col) {
  uint r = max(row, col), c = min(row, col);
  return load(A.x, matrix * A.xs.batch + r * A.xs.row + c * A.xs.col);
}

void work(uint matrix, uint row) {
  uint local = gl_LocalInvocationIndex;
  uint64_t first = uint64_t(matrix) * A.n;
  T most = 0.0;
#if FILL
  for (uint i = local; i < A.n; i += LANES) {
    most = max(most, load(A.largest, first + i));
  }
  most = group_max(most);
  bool finite = is_finite(most);
  T scale = finite ? scale_of(most) : T(0.0);
  for (uint col = local; col < A.n; col += LANES) {
    T v = finite ? item(matrix, row, col) * scale : T(0.0);
    store(A.a, (first + row) * A.n + col, v);
    if (col == 0) {
      uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
      store(A.state, state + row, row > 0 ? v : T(0.0));
      if (row == 0) {
        store(A.diagonals, 2 * first, v);
        store(A.state, state + (3 * A.n + 2 * BLOCK + 1), abs(v));
        T back = most > 0.0 ? inverse_power(scale) : T(0.0);
        store(A.scales, matrix, finite ? back : T(NAN_F));
      }
    }
  }
#else
  for (uint col = local; col <= row; col += LANES) {
    T v = item(matrix, row, col);
    most = is_finite(v) ? max(most, abs(v)) : T(INF_F);
  }
  most = group_max(most);
  if (local == 0) {
    store(A.largest, first + row, most);
  }
#endif
}
