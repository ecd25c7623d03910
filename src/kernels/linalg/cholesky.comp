// A block column of a Cholesky factor, left-looking (Golub & Van Loan, Matrix
// Computations, 4.2.9): earlier columns are subtracted from x by a product.
// Each workgroup factors the diagonal block again, which is less work than a
// dispatch; then an invocation has one row below it. A pivot that is zero, or
// negative by no more than rounding, gives a column of zeros: in a semidefinite
// matrix the rest of its column is zero, too (Higham, Accuracy and Stability of
// Numerical Algorithms, 10.3). Where it is not, and for a negative pivot, NaN.
#include "common/numeric.glsl"
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK CholeskyArgs
#include "common/args.glsl"

#define GROUP LINALG_GROUP
layout(local_size_x = GROUP) in;

shared T d[BLOCK][BLOCK + 1];

// Pads with the identity.
void load_block(int64_t x) {
  for (uint i = gl_LocalInvocationIndex; i < BLOCK * BLOCK; i += GROUP) {
    uint row = i / BLOCK, col = i % BLOCK;
    bool inside = row < A.width && col < A.width;
    int64_t at = inside ? x + row * A.xs.row + col * A.xs.col : x;
    T v = load(A.x, at);
    d[row][col] = inside ? v : row == col ? 1.0 : 0.0;
  }
  barrier();
}

// What becomes of x, in a column whose pivot is zero.
T below_zero(T x, int64_t a, uint row, uint col) {
  T most = 0.0;
  if (x != 0.0) { // rows of padding are zero
    int64_t next = A.as.row + A.as.col;
    most = A.tolerance * sqrt(load(A.a, a + row * next)) *
        sqrt(load(A.a, a + col * next));
  }
  return abs(x) <= most ? 0.0 : T(NAN_F);
}

void factor(int64_t a) {
  uint local = gl_LocalInvocationIndex;
  for (uint j = 0; j < A.width; ++j) {
    T pivot = d[j][j];
    T least = -A.tolerance * load(A.a, a + j * (A.as.row + A.as.col));
    T root = pivot > 0.0 ? sqrt(pivot) : pivot >= least ? 0.0 : T(NAN_F);
    barrier();
    uint row = j + local;
    if (row < BLOCK && row > j && root == 0.0) {
      d[row][j] = below_zero(d[row][j], a, row, j);
    } else if (row < BLOCK) {
      d[row][j] = row == j ? root : d[row][j] / root;
    }
    barrier();
    // Invocation i has column i % BLOCK of every fourth row.
    uint col = local % BLOCK;
    for (uint r = j + 1 + local / BLOCK; r < BLOCK; r += GROUP / BLOCK) {
      if (col > j && col <= r) {
        d[r][col] -= d[r][j] * d[col][j];
      }
    }
    barrier();
  }
}

void main() {
  uint group = group_index();
  uint matrix = min(group / A.groups, A.count - 1);
  bool mine = group / A.groups < A.count;
  uint part = group % A.groups;
  int64_t x = matrix * A.xs.batch;
  int64_t y = matrix * A.ys.batch;
  int64_t a = matrix * A.as.batch;
  load_block(x);
  factor(a);
  uint local = gl_LocalInvocationIndex;
  for (uint i = local; mine && part == 0 && i < BLOCK * BLOCK; i += GROUP) {
    uint row = i / BLOCK, col = i % BLOCK;
    if (row < A.width && col <= row) {
      store(A.y, y + row * A.ys.row + col * A.ys.col, d[row][col]);
    }
  }
  uint row = A.width + part * GROUP + local;
  if (mine && row < A.rows) {
    x += row * A.xs.row;
    y += row * A.ys.row;
    T v[BLOCK];
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      T sum = c < A.width ? load(A.x, x + c * A.xs.col) : 0.0;
      [[unroll]] for (uint k = 0; k < c; ++k) {
        sum -= v[k] * d[c][k];
      }
      v[c] = d[c][c] == 0.0 ? below_zero(sum, a, row, c) : sum / d[c][c];
      if (c < A.width) {
        store(A.y, y + c * A.ys.col, v[c]);
      }
    }
  }
}
