// Writes updates[pre, k, post] to out[pre, index[pre, k, post], post].
#define UPDATES 1
#include "common/axis.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    put_update(A.dst, A.src, place(i));
  }
}
