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

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    UIndex tuple = i / UIndex(A.slice);
    UIndex rest = i - tuple * UIndex(A.slice);
    int64_t from = 0;
    for (int d = SLICE_NDIM - 1; d > 0; --d) {
      UIndex extent = UIndex(A.slice_shape[d]);
      UIndex next = rest / extent;
      from += int64_t(rest - next * extent) * A.slice_strides[d];
      rest = next;
    }
    from += int64_t(rest) * A.slice_strides[0];
#if NIDX > 0
    int64_t at[NIDX];
    for (int n = 0; n < NIDX; ++n) {
      at[n] = 0;
    }
    rest = tuple;
    for (int d = TUPLE_NDIM - 1; d >= 0; --d) {
      UIndex extent = UIndex(A.index_shape[d]);
      UIndex next = d > 0 ? rest / extent : UIndex(0);
      int64_t here = int64_t(rest - next * extent);
      for (int n = 0; n < NIDX; ++n) {
        at[n] += here * A.index_strides[n * I_NDIM + d];
      }
      rest = next;
    }
    for (int n = 0; n < NIDX; ++n) {
      int64_t k = wrap_index(load(I_PTR(A.index[n]), at[n]), A.axis_sizes[n]);
      from += k * A.axis_strides[n];
    }
#endif
    store_word(A.dst, i, load_word(A.src, from));
  }
}
