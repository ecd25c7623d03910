// An item's place is the number of items that come before it: those that sort
// before it, and its equals that stand before it. One dispatch, where merging
// takes one for each doubling; LANES invocations count for an item.
#include "common/order.glsl"
#include "sort_ranks.h"
#define ARGS_BLOCK SortRanksArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

const uint ITEMS = WG / LANES; // of a workgroup
const uint CHUNK = 1024;
shared T key_at[CHUNK];
shared uint counts[WG];

void main() {
  uint local = gl_LocalInvocationIndex;
  uint lane = local % LANES;
  uint groups = (A.n + ITEMS - 1) / ITEMS; // of a row
  // Workgroups beyond the last shadow row 0, so that barriers stay uniform.
  uint row = group_index() / groups;
  bool live = row < A.count;
  uint item = group_index() % groups * ITEMS + local / LANES;
  uint64_t base = uint64_t(live ? row : 0) * A.n;
  T own = load(A.src, base + min(item, A.n - 1));

  uint before = 0;
  const uint n = A.n;
  for (uint begin = 0; begin < n; begin += CHUNK) {
    uint count = min(CHUNK, n - begin);
    barrier();
    for (uint k = local; k < count; k += WG) {
      key_at[k] = load(A.src, base + (begin + k));
    }
    barrier();
    for (uint k = lane; k < count; k += LANES) {
      T other = key_at[k];
      bool first = begin + k < item ? !sorts_before(own, other)
                                    : sorts_before(other, own);
      before += first ? 1 : 0;
    }
  }
  counts[local] = before;
  barrier();
  if (live && lane == 0 && item < n) {
    for (uint i = 1; i < LANES; ++i) {
      before += counts[local + i];
    }
#if ARG
    store(A.y, base + before, item);
#else
    store(A.y, base + before, own);
#endif
  }
}
