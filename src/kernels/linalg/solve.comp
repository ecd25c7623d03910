// Forward substitution with a triangular block, an invocation for each right
// side (Golub & Van Loan, Matrix Computations, 3.1.1). Upper triangles come
// with negative strides.
#include "common/types.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK SolveArgs
#include "common/args.glsl"

#define GROUP LINALG_GROUP
layout(local_size_x = GROUP) in;

shared T t[BLOCK][BLOCK + 1];

void main() {
  uint group = group_index();
  bool mine = group / A.groups < A.count;
  uint matrix = min(group / A.groups, A.count - 1);
  uint column = group % A.groups * GROUP + gl_LocalInvocationIndex;
  int64_t base = matrix * A.ts.batch;
  for (uint i = gl_LocalInvocationIndex; i < BLOCK * BLOCK; i += GROUP) {
    uint row = i / BLOCK, col = i % BLOCK;
    bool inside = row < A.width && col < row + (1 - UNIT);
    T v = load(A.t, inside ? base + row * A.ts.row + col * A.ts.col : base);
    t[row][col] = inside ? v : row == col ? 1.0 : 0.0;
  }
  barrier();
  if (mine && column < A.columns) {
    int64_t x = matrix * A.xs.batch + column * A.xs.col;
#if R
    int64_t r = matrix * A.rs.batch + column * A.rs.col;
#endif
#if EYE == 2
    uint place = load(A.places, matrix * int64_t(A.columns) + column);
#elif EYE == 1
    uint place = column;
#endif
    T v[BLOCK]; // all are loaded before the first is stored
    [[unroll]] for (uint i = 0; i < BLOCK; ++i) {
      v[i] = 0.0;
#if R
      v[i] = load(A.r, r + min(i, A.width - 1) * A.rs.row);
      v[i] = EYE > 0 ? -v[i] : v[i];
#endif
#if EYE
      v[i] += place == A.first + i ? 1.0 : 0.0;
#endif
    }
    [[unroll]] for (uint i = 0; i < BLOCK; ++i) {
#if UNIT
      T known = v[i];
#else
      T known = v[i] / t[i][i];
#endif
      if (i < A.width) {
        store(A.x, x + i * A.xs.row, known);
      }
      [[unroll]] for (uint k = i + 1; k < BLOCK; ++k) {
        v[k] -= known * t[k][i];
      }
    }
  }
}
