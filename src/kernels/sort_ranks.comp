// Rank sort: an item's rank is the number of items that sort before it plus its
// equals at smaller positions. It takes one dispatch where a merge sort takes
// one per doubling. LANES invocations count for OWN items, so that each key
// read is compared OWN times.
#include "common/order.glsl"
#include "sort_ranks.h"
#define ARGS_BLOCK SortRanksArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

const uint ITEMS = WG / LANES * OWN; // items per workgroup
const uint CHUNK = 1024;
shared T key_at[CHUNK];
shared uint counts[WG * OWN];

T own[OWN];
uint before[OWN];

// Counts the `count` keys in shared memory for which FIRST(i) holds, comparing
// `other` with own[i].
#define COUNT_KEYS(FIRST)                                                     \
  for (uint k = gl_LocalInvocationIndex % LANES; k < count; k += LANES) {     \
    T other = key_at[k];                                                      \
    [[unroll]] for (uint i = 0; i < OWN; ++i) {                               \
      before[i] += FIRST(i) ? 1 : 0;                                          \
    }                                                                         \
  }
#define STANDS_BEFORE(i) (!sorts_before(own[i], other))
#define STANDS_AFTER(i) (sorts_before(other, own[i]))
#define EITHER(i) (begin + k < item + i ? STANDS_BEFORE(i) : STANDS_AFTER(i))

void main() {
  uint local = gl_LocalInvocationIndex;
  const uint n = A.n;
  uint groups = (n + ITEMS - 1) / ITEMS; // workgroups per row
  // Workgroups beyond the last take row 0, so that barriers stay uniform.
  uint row = group_index() / groups;
  bool live = row < A.count;
  uint64_t base = uint64_t(live ? row : 0) * n;
  uint first = group_index() % groups * ITEMS;
  uint item = first + local / LANES * OWN;
  [[unroll]] for (uint i = 0; i < OWN; ++i) {
    own[i] = load(A.src, base + min(item + i, n - 1));
    before[i] = 0;
  }

  for (uint begin = 0; begin < n; begin += CHUNK) {
    uint count = min(CHUNK, n - begin);
    barrier();
    for (uint k = local; k < count; k += WG) {
      key_at[k] = load(A.src, base + (begin + k));
    }
    barrier();
    if (begin + count <= first) {
      COUNT_KEYS(STANDS_BEFORE)
    } else if (begin >= first + ITEMS) {
      COUNT_KEYS(STANDS_AFTER)
    } else {
      COUNT_KEYS(EITHER)
    }
  }
  [[unroll]] for (uint i = 0; i < OWN; ++i) {
    counts[local * OWN + i] = before[i];
  }
  barrier();
  if (live && local < ITEMS && first + local < n) {
    uint place = 0;
    for (uint l = 0; l < LANES; ++l) {
      place += counts[(local / OWN * LANES + l) * OWN + local % OWN];
    }
#if ARG
    store(A.y, base + place, first + local);
#else
    T key = load(A.src, base + (first + local));
    store(A.y, base + place, key);
#endif
  }
}
