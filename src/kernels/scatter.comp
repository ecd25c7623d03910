// out[slice at the tuple's indices] takes updates[tuple..., slice...], one
// word (assignment) or one item (REDUCE) an invocation.
#define UPDATES 1
#include "common/tuples.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    put_update(A.dst, A.src, place(i));
  }
}
