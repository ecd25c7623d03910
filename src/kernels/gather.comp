// out[tuple..., slice...] = src[slice at the tuple's indices]. An invocation
// loads WORDS words before it stores the first. Source offsets are always
// 64-bit; LARGE concerns the output only.
#define UPDATES 0
#include "common/tuples.glsl"

#define WG_SIZE 256
layout(local_size_x = WG_SIZE) in;

#define EACH_WORD                                                             \
  [[unroll]] for (uint k = 0, at = gl_LocalInvocationIndex; k < WORDS;        \
                  ++k, at += WG_SIZE)

void main() {
  UIndex first = UIndex(group_index()) * (WORDS * WG_SIZE);
  UIndex count = UIndex(A.count);
  if (first + WORDS * WG_SIZE <= count) {
    Word words[WORDS];
    EACH_WORD {
      words[k] = word_at(A.src, place(first + at));
    }
    EACH_WORD {
      store_word(A.dst, first + at, words[k]);
    }
  } else {
    EACH_WORD {
      if (first + at < count) {
        store_word(A.dst, first + at, word_at(A.src, place(first + at)));
      }
    }
  }
}
