// Products with the column u of the next reflector (tridiagonal.h): of rows of
// the symmetric a, and of the block's v, w and u as further rows. 32 invocations
// have two rows.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"

#define TEAM 32
#define TEAMS (PRODUCT_GROUP / TEAM)
#define FEW 4 // loads at once
layout(local_size_x = PRODUCT_GROUP) in;

shared T sums[2][PRODUCT_GROUP / 4];

// What row q begins with; there are m of a, then columns of v, of w, and u.
T_PTR start_of(uint q, uint m, uint matrix, uint64_t u) {
  uint j = A.column, k = q - m;
  uint64_t column = uint64_t(matrix) * 3 * BLOCK + (k < j ? k : BLOCK + k - j);
  uint64_t row = (uint64_t(matrix) * m + q) * m;
  T_PTR of_a = MOVED(T, A.a, row), of_panel = MOVED(T, A.panel, column * A.n),
        of_u = MOVED(T, A.state, u);
  return T_PTR(
      q < m           ? uint64_t(of_a)
          : k < 2 * j ? uint64_t(of_panel)
                      : uint64_t(of_u));
}

void work(uint matrix, uint group) {
  uint m = A.n - A.at, last = m + 2 * A.column;
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t u = state + ((A.at + A.column) % 2) * A.n + A.at;
  uint team = gl_LocalInvocationIndex / TEAM;
  uint q = group * PRODUCT_ROWS + team;
  T_PTR x = start_of(min(q, last), m, matrix, u);
  T_PTR y = start_of(min(q + TEAMS, last), m, matrix, u);
  T sum_x = 0.0, sum_y = 0.0;
  // u is zero up to its column, and items before it may be.
  uint lane = gl_LocalInvocationIndex % TEAM + (A.column + 1) / TEAM * TEAM;
  for (uint c0 = lane; c0 < m; c0 += FEW * TEAM) {
    [[unroll]] for (uint i = 0; i < FEW; ++i) {
      uint c = min(c0 + i * TEAM, m - 1);
      T by = load(A.state, u + c);
      by = c0 + i * TEAM < m ? by : 0.0;
      sum_x += load(x, c) * by;
      sum_y += load(y, c) * by;
    }
  }
  sum_x += shuffle_xor(sum_x, 1u);
  sum_y += shuffle_xor(sum_y, 1u);
  sum_x += shuffle_xor(sum_x, 2u);
  sum_y += shuffle_xor(sum_y, 2u);
  if (gl_LocalInvocationIndex % 4 == 0) {
    sums[0][gl_LocalInvocationIndex / 4] = sum_x;
    sums[1][gl_LocalInvocationIndex / 4] = sum_y;
  }
  barrier();
  uint local = gl_LocalInvocationIndex;
  q = group * PRODUCT_ROWS + local;
  if (local < PRODUCT_ROWS && q <= last) {
    T sum = 0.0;
    [[unroll]] for (uint i = 0; i < TEAM / 4; ++i) {
      sum += sums[local / TEAMS][local % TEAMS * (TEAM / 4) + i];
    }
    store(A.state, state + 2 * A.n + q, sum);
  }
}

void main() {
  uint matrix = group_index() / A.groups;
  if (matrix < A.count) { // uniform
    work(matrix, group_index() % A.groups);
  }
}
