// Copies between arbitrary strides: as raw words, with a type conversion, or
// combined with the destination by REDUCE.
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

#if DYN_IN || DYN_OUT
// Returns 0, a safe offset, if the slice is out of bounds.
Index dynamic_offset(int64_t offset, inout bool inside) {
  inside = inside && offset != NO_OFFSET;
  return inside ? Index(offset) : Index(0);
}
#endif

void main() {
  UIndex rest = flat_index();
  if (rest < UIndex(A.count)) {
    Index from = A.in_offset;
    Index to = A.out_offset;
    bool inside = true;
#if DYN_IN
    from += dynamic_offset(load(A.dynamic_in, 0), inside);
#endif
#if DYN_OUT
    to += dynamic_offset(load(A.dynamic_out, 0), inside);
    if (!inside) {
      return;
    }
#endif
    for (int d = LAST_AXIS; d >= 0; --d) {
      Index here = Index(TAKE_AXIS(d, rest, UIndex(A.shape[d])));
      from += here * A.in_strides[d];
      to += here * A.out_strides[d];
    }
#if WORD
    Word word = load_word(A.src, from);
    store_word(A.dst, to, inside ? word : Word(0));
#elif REDUCES
    store(A.dst, to, REDUCE(load(A.dst, to), load(A.src, from)));
#else
    D item = D_CAST(load(A.src, from));
    store(A.dst, to, inside ? item : D(0));
#endif
  }
}
