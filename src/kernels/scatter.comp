// Writes updates[tuple..., slice...] to out[slice at the tuple's indices], one
// word (assignment) or one item (REDUCE) per invocation.
#define UPDATES 1
#include "common/tuples.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    put_update(A.dst, A.src, place(i));
  }
}
