// out[tuple..., slice...] = src[slice at the tuple's indices], one word an
// invocation. Source offsets are 64-bit; LARGE is about the output alone.
#define UPDATES 0
#include "common/tuples.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    store_word(A.dst, i, load_word(A.src, place(i).target));
  }
}
