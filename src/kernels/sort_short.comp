// Stable sort of rows of a few items, NaN last. An invocation takes an item,
// whose place is the number of its row's items that belong before it. A
// workgroup takes as many rows as fit.
#define LAST 1
#include "common/index.glsl"
#include "common/order.glsl"
#include "sort.h"
#define ARGS_BLOCK SortTileArgs
#include "common/args.glsl"

layout(local_size_x = WG) in;

#if T_KIND == KIND_FLOAT
// Integers in the order of floats, which take fewer operations to compare.
#define Key uint
Key order_key(float x) {
  uint bits = floatBitsToUint(x);
  bits = bits == 0x80000000u ? 0 : bits;
  return is_nan(x) ? ~0u : bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
#else
#define Key T
#define order_key(x) x
#endif
shared Key key_at[WG];

void main() {
  uint local = gl_LocalInvocationID.x;
  const uint n = A.rows.n, rows = WG / n, post = uint(A.rows.post);
  // Adjacent invocations take adjacent items: of a row, or of adjacent rows.
  bool along = post == 1;
  uint item = along ? local % n : local / rows;
  uint step = along ? 1 : rows;
  uint first = local - item * step; // of the row in key_at
  uint64_t row64 = uint64_t(group_index()) * rows + (along ? local / n : first);
  bool live = local < rows * n && row64 < A.rows.count;
  uint row = uint(row64); // the host limits the count
  T x;
  if (live) {
    int64_t from = int64_t(item) * A.axis_stride;
    uint rest = row;
    int last = NDIM == MAX_NDIM ? A.others.ndim - 1 : NDIM - 1;
    for (int d = last; d >= 0; --d) {
      from += int64_t(TAKE_AXIS(d, rest, uint(A.others.shape[d]))) *
          A.others.strides[d];
    }
    x = load(A.src, from);
    key_at[local] = order_key(x);
  }
  barrier();
  if (live) {
    Key own = key_at[local];
    uint place = 0;
    for (uint k = 0; k < n; ++k) {
      Key other = key_at[first + k * step];
      bool before =
          k < item ? !sorts_before(own, other) : sorts_before(other, own);
      place += before ? 1 : 0;
    }
    uint outer = along ? row : row / post;
    uint64_t to = (uint64_t(outer) * n + place) * post + (row - outer * post);
#if ARG
    store(A.positions, to, item);
#else
    store(A.keys, to, x);
#endif
  }
}
