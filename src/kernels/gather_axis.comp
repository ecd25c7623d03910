// out[pre, k, post] = src[pre, index[pre, k, post], post].
#define UPDATES 0
#include "common/axis.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    store_word(A.dst, i, word_at(A.src, place(i)));
  }
}
