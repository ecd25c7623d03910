// Householder QR of a block column (Golub & Van Loan, Matrix Computations,
// 5.2.2; signs and scaling as LAPACK's larfg), and the triangle t for which
// H1 H2 ... = I - v t v^T (Schreiber & Van Loan, A Storage-Efficient WY
// Representation, 1989). A workgroup has a matrix, and an invocation every
// WG_SIZE-th row: rows meet only in shared memory. Loops over columns are
// unrolled: llvmpipe ends an invocation's loops after 65,535 iterations in all.
#include "linalg/real.glsl"
#include "linalg/linalg.h"
#define ARGS_BLOCK QrPanelArgs
#include "common/args.glsl"
#include "linalg/per_matrix.glsl"

layout(local_size_x = WG_SIZE) in;

#define QUADS (WG_SIZE / 4)
shared T sums[BLOCK][QUADS];
shared T total[BLOCK];
shared T triangle[BLOCK][BLOCK + 1];
shared T head;

#if ROWS
shared T tile[BLOCK][ROWS];
#define TAKE(row, col) tile[col][row]
#define PUT(row, col, value) tile[col][row] = value
#else
#define AT(r, c) v + (r) * A.vs.row + (c) * A.vs.col
#define TAKE(r, c) load(A.v, AT(r, c))
#define PUT(r, c, value) store(A.v, AT(r, c), value)
#endif

// NAME(x) is OP over all invocations' x.
#define GROUP_REDUCE(NAME, OP)                                                \
  T NAME(T x) {                                                       \
    x = OP(x, shuffle_xor(x, 1u));                                     \
    x = OP(x, shuffle_xor(x, 2u));                                     \
    if (gl_LocalInvocationIndex % 4 == 0) {                                   \
      sums[0][gl_LocalInvocationIndex / 4] = x;                               \
    }                                                                         \
    barrier();                                                                \
    x = sums[0][0];                                                           \
    for (uint i = 1; i < QUADS; ++i) {                                        \
      x = OP(x, sums[0][i]);                                                  \
    }                                                                         \
    barrier();                                                                \
    return x;                                                                 \
  }
#define PLUS(a, b) ((a) + (b))
GROUP_REDUCE(group_sum, PLUS)
GROUP_REDUCE(group_max, max)

// total[c] = the sum of part[c] over all invocations.
void group_sums(T part[BLOCK], uint columns) {
  uint local = gl_LocalInvocationIndex;
  [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
    T x = part[c] + shuffle_xor(part[c], 1u);
    x += shuffle_xor(x, 2u);
    if (local % 4 == 0) {
      sums[c][local / 4] = x;
    }
  }
  barrier();
  for (uint c = local; c < columns; c += WG_SIZE) {
    T x = 0.0;
    for (uint i = 0; i < QUADS; ++i) {
      x += sums[c][i];
    }
    total[c] = x;
  }
  barrier();
}

// Makes column j a reflector below its diagonal; the diagonal gets R's item.
// Returns tau. `largest`: of the column from j on.
T reflect(uint j, T largest, int64_t v) {
  uint local = gl_LocalInvocationIndex;
  T scale = scale_of(largest);
  T part = 0.0;
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    T x = row > j ? TAKE(row, j) * scale : 0.0;
    part += x * x;
    if (row == j) {
      head = TAKE(row, j) * scale;
    }
  }
  T below = group_sum(part);
  T alpha = head;
  T length_ = sqrt(alpha * alpha + below);
  T beta = alpha > 0.0 ? -length_ : length_;
  bool none = below == 0.0;
  T factor = none ? 0.0 : 1.0 / (alpha - beta);
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    if (row > j) {
      PUT(row, j, TAKE(row, j) * scale * factor);
    } else if (row == j) {
      PUT(row, j, none ? TAKE(row, j) : beta * inverse_power(scale));
    }
  }
  return none ? 0.0 : (beta - alpha) / beta;
}

// Applies reflector j to later columns and extends t.
void apply(uint j, T tau, int64_t v) {
  uint local = gl_LocalInvocationIndex;
  T part[BLOCK];
  [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
    part[c] = 0.0;
  }
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    if (row >= j) {
      T here = row == j ? 1.0 : TAKE(row, j);
      [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
        if (c < A.width && c != j) {
          part[c] += here * TAKE(row, c);
        }
      }
    }
  }
  group_sums(part, A.width);
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    if (row >= j) {
      T here = row == j ? tau : tau * TAKE(row, j);
      [[unroll]] for (uint c = 1; c < BLOCK; ++c) {
        if (c > j && c < A.width) {
          PUT(row, c, TAKE(row, c) - here * total[c]);
        }
      }
    }
  }
  if (local < j) {
    T sum = 0.0;
    for (uint k = local; k < j; ++k) {
      sum += triangle[local][k] * total[k];
    }
    triangle[local][j] = -tau * sum;
  }
  if (local == j) {
    triangle[j][j] = tau;
  }
}

void work(uint matrix) {
  uint local = gl_LocalInvocationIndex;
  int64_t x = matrix * A.xs.batch;
  int64_t v = matrix * A.vs.batch;
  for (uint i = local; i < BLOCK * BLOCK; i += WG_SIZE) {
    triangle[i / BLOCK][i % BLOCK] = 0.0;
  }
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      if (c < A.width) {
        PUT(row, c, load(A.x, x + row * A.xs.row + c * A.xs.col));
      }
    }
  }
  barrier();
  for (uint j = 0; j < A.width; ++j) {
    T most = 0.0;
    for (uint row = local; row < A.rows; row += WG_SIZE) {
      most = row >= j ? max(most, abs(TAKE(row, j))) : most;
    }
    T tau = reflect(j, group_max(most), v);
    apply(j, tau, v);
    barrier();
  }
  for (uint row = local; row < A.rows; row += WG_SIZE) {
    [[unroll]] for (uint c = 0; c < BLOCK; ++c) {
      if (c < A.width) {
        T here = TAKE(row, c);
        if (row <= c) {
          int64_t r = matrix * A.rs.batch;
          store(A.r, r + row * A.rs.row + c * A.rs.col, here);
        }
        here = row > c ? here : row == c ? 1.0 : 0.0;
        store(A.v, v + row * A.vs.row + c * A.vs.col, here);
      }
    }
  }
  for (uint i = local; i < A.width * A.width; i += WG_SIZE) {
    store(
        A.t,
        uint64_t(matrix) * A.width * A.width + i,
        triangle[i / A.width][i % A.width]);
  }
}
