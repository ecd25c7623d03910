// Insertion point of each value in a sorted sequence: before its equals, or
// after them with RIGHT.
#include "common/index.glsl"
#include "common/loops.glsl"
#include "common/order.glsl"
#include "searchsorted.h"
#define ARGS_BLOCK SearchSortedArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  uint64_t i = thread_index64();
  if (i < A.count) {
    uint64_t rest = i;
    int64_t from = 0;
    for (int d = LAST_AXIS; d >= 0; --d) {
      from += int64_t(TAKE_AXIS(d, rest, uint64_t(A.shape[d]))) *
          A.value_strides[d];
    }
    T value = load(A.values, from);
    uint low = 0;
    uint high = A.size;
    // Each iteration halves the interval, rounding down: one iteration per bit.
    BOUNDED_WHILE(low < high, 32) {
      uint middle = low + (high - low) / 2;
      T item = load(A.sequence, int64_t(middle) * A.sequence_stride);
#if RIGHT
      bool below = !sorts_before(value, item);
#else
      bool below = sorts_before(item, value);
#endif
      low = below ? middle + 1 : low;
      high = below ? high : middle;
    }
    store(A.dst, i, low);
  }
}
