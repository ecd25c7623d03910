// Products with the column u of the next reflector (tridiagonal.h): of rows of
// the symmetric a, and of the block's v, w and u as further rows; and a part of
// u^T a u. A team has ROWS rows.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK ReduceArgs
#include "common/args.glsl"
#define GROUPS A.groups
#include "linalg/per_matrix.glsl"
#define WG_SIZE PRODUCT_GROUP
#include "common/lanes.glsl"

#define EACH_ROW [[unroll]] for (uint r = 0; r < ROWS; ++r)
layout(local_size_x = WG_SIZE) in;

shared T sums[ROWS + 1][WG_SIZE / 4];

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
  uint first = group * (ROWS * TEAMS);
  uint64_t state = uint64_t(matrix) * REDUCE_STATE(A.n, BLOCK);
  uint64_t u = state + ((A.at + A.column) % 2) * A.n + A.at;
  uint64_t starts[ROWS];
  T sum[ROWS + 1], own[ROWS];
  sum[ROWS] = 0.0;
  EACH_ROW {
    uint q = min(first + r * TEAMS + TEAM, last);
    starts[r] = start_of(q, m, matrix, u);
    own[r] = q < m ? load(A.state, u + q) : T(0.0);
    sum[r] = 0.0;
  }
  // u is zero up to its column, and items before it may be.
  uint start = (A.column + 1) / LANES * LANES;
  for (; start < m; start += FEW * LANES) {
    [[unroll]] for (uint i = 0; i < FEW; ++i) {
      uint at = start + i * LANES + LANE;
      uint c = min(at, m - 1);
      T by = load(A.state, u + c);
      by = at < m ? by : 0.0;
      EACH_ROW sum[r] += load(T_PTR(starts[r]), c) * by;
    }
  }
  EACH_ROW sum[ROWS] += own[r] * sum[r];
  [[unroll]] for (uint r = 0; r <= ROWS; ++r) {
    sum[r] += shuffle_xor(sum[r], 1u);
    sum[r] += shuffle_xor(sum[r], 2u);
    if (gl_LocalInvocationIndex % 4 == 0) {
      sums[r][gl_LocalInvocationIndex / 4] = sum[r];
    }
  }
  barrier();
  // Four invocations have the sums of a row of each team.
  uint r = gl_LocalInvocationIndex / 4, quarter = gl_LocalInvocationIndex % 4;
  T total = 0.0;
  if (r <= ROWS) {
    [[unroll]] for (uint i = 0; i < WG_SIZE / 16; ++i) {
      total += sums[r][quarter * (WG_SIZE / 16) + i];
    }
  }
  T all = total;
  [[unroll]] for (uint mask = 1; mask < 4; mask *= 2) {
    all += shuffle_xor(all, mask);
    total = mask * TEAMS < 4 ? all : total;
  }
  uint q = first + r * TEAMS + quarter * TEAMS / 4;
  if (r < ROWS && quarter % (4 / TEAMS) == 0 && q <= last) {
    store(A.state, state + 2 * A.n + q, total);
  }
  if (r == ROWS && quarter == 0) {
    store(A.state, state + (3 * A.n + 2 * BLOCK + 3) + group, all);
  }
}
