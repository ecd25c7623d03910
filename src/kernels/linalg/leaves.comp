// Parts of a tridiagonal matrix, each as a whole matrix, a workgroup for each
// (Cuppen, 1981): what joins two parts, e in both places beside the diagonal, is
// |e| times the square of a vector, and |e| is taken off the diagonal.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK LeavesArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

#define GROUP 64
layout(local_size_x = GROUP) in;

uint64_t diagonal;

// Between rows i - 1 and i.
T beside(uint i) {
  bool inside = i > 0 && i < A.n;
  T e = load(A.diagonals, diagonal + A.n + (inside ? i - 1 : 0));
  return inside ? e : T(0.0);
}

T on_diagonal(uint i) {
  return load(A.diagonals, diagonal + min(i, A.n - 1));
}

void work(uint leaf) {
  diagonal = uint64_t(leaf / A.leaves) * 2 * A.n;
  uint first = leaf % A.leaves * A.rows;
  T bound = 0.0;
  for (uint i = first; i < min(first + A.rows, A.n); ++i) {
    T sum = abs(on_diagonal(i)) + 2.0 * (abs(beside(i)) + abs(beside(i + 1)));
    bound = max(bound, sum);
  }
  for (uint i = gl_LocalInvocationIndex; i < A.rows * A.rows; i += GROUP) {
    uint row = first + i / A.rows, col = first + i % A.rows;
    T v = row + 1 == col || col + 1 == row ? beside(max(row, col)) : T(0.0);
    if (row == col) {
      v = on_diagonal(row);
      v -= row == first ? abs(beside(row)) : T(0.0);
      v -= row == first + A.rows - 1 ? abs(beside(row + 1)) : T(0.0);
      v = row < A.n ? v : 2.0 * bound + 1.0;
    }
    store(A.parts, uint64_t(leaf) * A.rows * A.rows + i, v);
  }
}
