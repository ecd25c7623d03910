// Any strides to any strides: raw words, or a cast, or the destination is
// combined with the source.
#include "common/index.glsl"

#if WORD
#include "common/words.glsl"
#define SRC_PTR WordPtr
#define DST_PTR WordPtr
#else
#include "common/types.glsl"
#define SRC_PTR S_PTR
#define DST_PTR D_PTR
#endif
#if REDUCES
#include "common/combine.glsl"
#endif
#include "copy.h"
#define ARGS_BLOCK CopyArgs
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex rest = flat_index();
  if (rest < UIndex(A.count)) {
    Index from = A.in_offset;
    Index to = A.out_offset;
#if DYN_IN
    from += Index(load(A.dynamic_in, 0));
#endif
#if DYN_OUT
    to += Index(load(A.dynamic_out, 0));
#endif
    for (int d = LAST_AXIS; d >= 0; --d) {
      Index here = Index(TAKE_AXIS(d, rest, UIndex(A.shape[d])));
      from += here * A.in_strides[d];
      to += here * A.out_strides[d];
    }
#if WORD
    store_word(A.dst, to, load_word(A.src, from));
#elif REDUCES
    store(A.dst, to, REDUCE(load(A.dst, to), load(A.src, from)));
#else
    store(A.dst, to, D_CAST(load(A.src, from)));
#endif
  }
}
