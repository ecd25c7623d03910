// Signs of the singular vectors v, so that u, from QR, has positive values.
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK SignsArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  uint64_t i = thread_index64();
  uint64_t row = i / A.n;
  uint64_t matrix = row / A.n;
  if (matrix < A.count) {
    uint64_t col = i - row * A.n;
    row -= matrix * A.n;
    int64_t r = int64_t(matrix) * A.rs.batch;
    int64_t at = int64_t(matrix) * A.vs.batch + int64_t(row) * A.vs.row +
        int64_t(col) * A.vs.col;
    T d = load(A.r, r + int64_t(col) * (A.rs.row + A.rs.col));
    T v = load(A.v, at);
    store(A.v, at, d < 0.0 ? -v : v);
  }
}
