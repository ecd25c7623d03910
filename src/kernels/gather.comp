// variants: WORD=1,2,4,16 I=i32,u32 NIDX=1 I_NDIM=1 S_NDIM=1 WIDE=0 ; WORD=4 I=i64 NIDX=0,2,20 I_NDIM=2,16 S_NDIM=2,16 WIDE=0,1
// out[tuple..., slice...] = src[slice at the tuple's indices], one word an
// invocation. Source offsets are 64-bit; WIDE is about the output alone.
#if WIDE
#define LARGE
#endif
#include "common/index.glsl"
#include "common/indices.glsl"
#include "common/words.glsl"

#define ARGS                                                                  \
  WordPtr src;                                                                \
  INDEX_ADDRESS_ARG                                                           \
  WordPtr dst;                                                                \
  uint64_t count;                                                             \
  uint64_t slice;                                                             \
  INDEX_STRIDE_ARGS                                                           \
  int64_t slice_strides[S_NDIM];                                              \
  INDEX_SIZE_ARGS                                                             \
  uint slice_shape[S_NDIM];                                                   \
  uint slice_ndim;
#include "common/args.glsl"
#include "common/tuples.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    UIndex tuple = i / UIndex(A.slice);
    UIndex rest = i - tuple * UIndex(A.slice);
    int64_t from = 0;
    for (int d = SLICE_NDIM - 1; d >= 0; --d) {
      from += int64_t(TAKE_AXIS(d, rest, UIndex(A.slice_shape[d]))) *
          A.slice_strides[d];
    }
    int64_t unused = 0;
    from += tuple_offset(tuple, unused);
    store_word(A.dst, i, load_word(A.src, from));
  }
}
