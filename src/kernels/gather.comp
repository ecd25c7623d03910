// out[tuple..., slice...] = src[slice at the tuple's indices], WORDS words an
// invocation, all under way before the first is stored. Source offsets are
// 64-bit; LARGE is about the output alone.
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
