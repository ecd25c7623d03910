// Products with the column u of the next reflector (tridiagonal.h): of rows of
// the symmetric a, and of the block's v, w and u as further rows. 32 invocations
// have ROWS rows.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"

#define TEAM 32
#define TEAMS (PRODUCT_GROUP / TEAM)
#define FEW 8 // loads of each at once
#define EACH_ROW [[unroll]] for (uint r = 0; r < ROWS; ++r)
layout(local_size_x = PRODUCT_GROUP) in;

shared T sums[ROWS][PRODUCT_GROUP / 4];

// The address of row q; there are m of a, then columns of v, of w, and u.
uint64_t start_of(uint q, uint m, uint matrix, uint64_t u) {
  uint j = A.column, k = q - m;
  uint64_t column = uint64_t(matrix) * 3 * BLOCK + (k < j ? k : BLOCK + k - j);
  uint64_t row = (uint64_t(matrix) * m + q) * m;
  T_PTR of_a = MOVED(T, A.a, row), of_panel = MOVED(T, A.panel, column * A.n),
        of_u = MOVED(T, A.state, u);
  return q < m    ? uint64_t(of_a)
      : k < 2 * j ? uint64_t(of_panel)
                  : uint64_t(of_u);
}

void work(uint matrix, uint group) {
  uint m = A.n - A.at, last = m + 2 * A.column;
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t u = state + ((A.at + A.column) % 2) * A.n + A.at;
  uint team = gl_LocalInvocationIndex / TEAM;
  uint64_t starts[ROWS];
  T sum[ROWS];
  EACH_ROW {
    uint q = min(group * (ROWS * TEAMS) + r * TEAMS + team, last);
    starts[r] = start_of(q, m, matrix, u);
    sum[r] = 0.0;
  }
  // u is zero up to its column, and items before it may be.
  uint start = (A.column + 1) / TEAM * TEAM;
  for (; start < m; start += FEW * TEAM) {
    [[unroll]] for (uint i = 0; i < FEW; ++i) {
      uint at = start + i * TEAM + gl_LocalInvocationIndex % TEAM;
      uint c = min(at, m - 1);
      T by = load(A.state, u + c);
      by = at < m ? by : 0.0;
      EACH_ROW sum[r] += load(T_PTR(starts[r]), c) * by;
    }
  }
  EACH_ROW {
    sum[r] += shuffle_xor(sum[r], 1u);
    sum[r] += shuffle_xor(sum[r], 2u);
    if (gl_LocalInvocationIndex % 4 == 0) {
      sums[r][gl_LocalInvocationIndex / 4] = sum[r];
    }
  }
  barrier();
  uint local = gl_LocalInvocationIndex;
  uint q = group * (ROWS * TEAMS) + local;
  if (local < ROWS * TEAMS && q <= last) {
    T total = 0.0;
    [[unroll]] for (uint i = 0; i < TEAM / 4; ++i) {
      total += sums[local / TEAMS][local % TEAMS * (TEAM / 4) + i];
    }
    store(A.state, state + 2 * A.n + q, total);
  }
}

void main() {
  uint matrix = group_index() / A.groups;
  if (matrix < A.count) { // uniform
    work(matrix, group_index() % A.groups);
  }
}
