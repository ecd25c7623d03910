// variants: WORD=1,2,4,16 I=i32 NIDX=1 I_NDIM=1 S_NDIM=1 WIDE=0 ; T=f32,f16,bool,c64,i32 REDUCE=combine_Sum SUM=1 I=u32 NIDX=1 I_NDIM=1 S_NDIM=1 WIDE=0 ; T=f32,i8 REDUCE=combine_Max SUM=0 I=i64 NIDX=0,2 I_NDIM=16 S_NDIM=16 WIDE=0,1
// out[slice at the tuple's indices] takes updates[tuple..., slice...], one
// word (assignment) or one item (REDUCE) an invocation.
#if WIDE
#define LARGE
#endif
#include "common/index.glsl"
#include "common/indices.glsl"
#ifdef WORD
#include "common/words.glsl"
#define ITEM_PTR WordPtr
#else
#include "common/atomics.glsl"
#define ITEM_PTR T_PTR
#endif

#define ARGS                                                                  \
  ITEM_PTR updates;                                                           \
  INDEX_ADDRESS_ARG                                                           \
  ITEM_PTR dst;                                                               \
  uint64_t count;                                                             \
  uint64_t slice;                                                             \
  INDEX_STRIDE_ARGS                                                           \
  int64_t update_tuple_strides[I_NDIM];                                       \
  int64_t slice_strides[S_NDIM];                                              \
  int64_t update_strides[S_NDIM];                                             \
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
    int64_t to = 0;
    for (int d = SLICE_NDIM - 1; d >= 0; --d) {
      UIndex extent = UIndex(A.slice_shape[d]);
      UIndex next = d > 0 ? rest / extent : UIndex(0);
      int64_t here = int64_t(rest - next * extent);
      from += here * A.update_strides[d];
      to += here * A.slice_strides[d];
      rest = next;
    }
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
      from += here * A.update_tuple_strides[d];
      for (int n = 0; n < NIDX; ++n) {
        at[n] += here * A.index_strides[n * I_NDIM + d];
      }
      rest = next;
    }
    for (int n = 0; n < NIDX; ++n) {
      int64_t k = wrap_index(load(I_PTR(A.index[n]), at[n]), A.axis_sizes[n]);
      to += k * A.axis_strides[n];
    }
#endif
#ifdef WORD
    store_word(A.dst, to, load_word(A.updates, from));
#else
    atomic_combine(uint64_t(A.dst) + to * T_SIZE, load(A.updates, from));
#endif
  }
}
