// Computes the tiles of sorted products (sorted_tiles.h) in one workgroup. Each
// invocation has a segment of rows; prefix scans give it the start of the run
// in which the segment begins and the number of tiles before it.
#include "common/types.glsl"
#include "gemm/sorted_tiles.h"
#define ARGS_BLOCK SortedTilesArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

shared uint shares[WG]; // one value per invocation, then inclusive prefixes

// Exclusive prefix maximum and prefix sum over the invocations.
#define BEFORE(NAME, JOIN)                                                    \
  uint NAME(uint x) {                                                         \
    uint t = gl_LocalInvocationIndex;                                         \
    shares[t] = x;                                                            \
    for (uint reach = 1u; reach < WG; reach *= 2u) {                          \
      barrier();                                                              \
      uint other = t >= reach ? shares[t - reach] : 0u;                       \
      barrier();                                                              \
      shares[t] = JOIN(shares[t], other);                                     \
    }                                                                         \
    barrier();                                                                \
    uint before = t > 0u ? shares[t - 1u] : 0u;                               \
    barrier();                                                                \
    return before;                                                            \
  }
#define LARGER(a, b) max(a, b)
#define SUM(a, b) ((a) + (b))
BEFORE(largest_before, LARGER)
BEFORE(sum_before, SUM)

// Whether a run of equal indices begins at this row.
bool begins(uint row) {
  return row == 0u || load(A.rhs, row) != load(A.rhs, row - 1u);
}

void main() {
  uint segment = (A.rows + WG - 1u) / WG;
  uint first = min(gl_LocalInvocationIndex * segment, A.rows);
  uint end = min(first + segment, A.rows);

  uint run = 0u;
  for (uint row = first; row < end; ++row) {
    run = begins(row) ? row : run;
  }
  run = largest_before(run);
  uint count = 0u;
  uint begun = run;
  for (uint row = first; row < end; ++row) {
    begun = begins(row) ? row : begun;
    count += (row - begun) % A.height == 0u ? 1u : 0u;
  }
  uint at = sum_before(count);
  if (gl_LocalInvocationIndex == WG - 1u) {
    store(A.tiles, 0, at + count);
    store(A.tiles, 1u + at + count, A.rows);
  }
  for (uint row = first; row < end; ++row) {
    run = begins(row) ? row : run;
    if ((row - run) % A.height == 0u) {
      store(A.tiles, 1u + at, row);
      ++at;
    }
  }
}
