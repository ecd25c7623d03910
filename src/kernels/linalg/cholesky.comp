// A block column of a Cholesky factor (Golub & Van Loan, Matrix
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
#define MICRO 4
layout(local_size_x = GROUP) in;

shared T d[BLOCK][BLOCK + 1];
shared T diagonal[BLOCK]; // of a
shared T inverse[BLOCK]; // of d's diagonal, or 0

// Pads with the identity.
void load_block(int64_t x, int64_t a) {
  uint local = gl_LocalInvocationIndex;
  for (uint i = local; i < BLOCK * BLOCK; i += GROUP) {
    uint row = i / BLOCK, col = i % BLOCK;
    bool inside = row < A.width && col < A.width;
    int64_t at = inside ? x + row * A.xs.row + col * A.xs.col : x;
    T v = load(A.x, at);
    d[row][col] = inside ? v : row == col ? 1.0 : 0.0;
  }
  if (local < BLOCK) {
    int64_t at = local < A.width ? local * (A.as.row + A.as.col) : 0;
    diagonal[local] = load(A.a, a + at);
  }
  barrier();
}

// x / d[col][col], in a row for which a has `size` in its diagonal. Where the
// pivot is zero, x must be no more than rounding.
T divided(T x, T inverse, uint col, T size) {
  if (inverse == 0.0) { // uniform
    T most = A.tolerance * sqrt(size) * sqrt(diagonal[col]);
    return x == 0.0 || abs(x) <= most ? 0.0 : T(NAN_F);
  }
  return x * inverse;
}

// MICRO columns from j on. Each invocation factors their diagonal block again,
// and has one row.
void factor(uint j) {
  uint local = gl_LocalInvocationIndex;
  uint row = min(j + local, BLOCK - 1);
  T l[MICRO][MICRO], v[MICRO];
  [[unroll]] for (uint c = 0; c < MICRO; ++c) {
    [[unroll]] for (uint r = c; r < MICRO; ++r) {
      l[r][c] = d[j + r][j + c];
    }
    v[c] = d[row][j + c];
  }
  barrier();
  [[unroll]] for (uint c = 0; c < MICRO; ++c) {
    T pivot = l[c][c], least = -A.tolerance * diagonal[j + c];
    T root = pivot > 0.0 ? sqrt(pivot) : pivot >= least ? 0.0 : T(NAN_F);
    T over = root == 0.0 ? 0.0 : 1.0 / root;
    if (local == c) {
      inverse[j + c] = over;
    }
    [[unroll]] for (uint r = c + 1; r < MICRO; ++r) {
      l[r][c] = divided(l[r][c], over, j + c, diagonal[j + r]);
      [[unroll]] for (uint k = c + 1; k <= r; ++k) {
        l[r][k] -= l[r][c] * l[k][c];
      }
    }
    v[c] = local == c ? root : divided(v[c], over, j + c, diagonal[row]);
    [[unroll]] for (uint k = c + 1; k < MICRO; ++k) {
      v[k] -= v[c] * l[k][c];
    }
    if (j + local < BLOCK && c <= local) {
      d[row][j + c] = v[c];
    }
  }
  barrier();
  // Invocation i has column i % BLOCK of every fourth row.
  uint next = j + MICRO, col = local % BLOCK;
  for (uint r = next + local / BLOCK; r < BLOCK; r += GROUP / BLOCK) {
    if (col >= next && col <= r) {
      T sum = d[r][col];
      [[unroll]] for (uint k = 0; k < MICRO; ++k) {
        sum -= d[r][j + k] * d[col][j + k];
      }
      d[r][col] = sum;
    }
  }
  barrier();
}

void main() {
  uint group = group_index();
  uint matrix = min(group / A.groups, A.count - 1);
  bool mine = group / A.groups < A.count;
  uint part = group % A.groups;
  int64_t x = matrix * A.xs.batch;
  int64_t y = matrix * A.ys.batch;
  int64_t a = matrix * A.as.batch;
  load_block(x, a);
  for (uint j = 0; j < A.width; j += MICRO) {
    factor(j);
  }
  uint local = gl_LocalInvocationIndex;
  for (uint i = local; mine && part == 0 && i < BLOCK * BLOCK; i += GROUP) {
    uint row = i / BLOCK, col = i % BLOCK;
    if (row < A.width && col <= row) {
      store(A.y, y + row * A.ys.row + col * A.ys.col, d[row][col]);
    }
  }
  uint row = A.width + part * A.each + local;
  if (mine && local < A.each && row < A.rows) {
    T size = load(A.a, a + row * (A.as.row + A.as.col));
    x += row * A.xs.row;
    y += row * A.ys.row;
    T v[BLOCK];
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      v[c] = load(A.x, x + min(c, A.width - 1) * A.xs.col);
    }
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      if (c < A.width) {
        v[c] = divided(v[c], inverse[c], c, size);
        store(A.y, y + c * A.ys.col, v[c]);
      }
      [[unroll]] for (uint k = c + 1; k < BLOCK; ++k) {
        v[k] -= v[c] * d[k][c];
      }
    }
  }
}
