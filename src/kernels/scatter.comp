// variants: WORD=1,2,4,16 I=i32 NIDX=1 I_NDIM=1 S_NDIM=1 WIDE=0 ; T=f32,f16,bool,c64,i32 REDUCE=combine_Sum SUM=1 I=u32 NIDX=1 I_NDIM=1 S_NDIM=1 WIDE=0 ; T=f32,i8 REDUCE=combine_Max SUM=0 I=i64 NIDX=0,2 I_NDIM=16 S_NDIM=16 WIDE=0,1
// out[slice at the tuple's indices] takes updates[tuple..., slice...], one
// word (assignment) or one item (REDUCE) an invocation.
#include "common/updates.glsl"

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
#include "common/tuples.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    UIndex tuple = i / UIndex(A.slice);
    UIndex rest = i - tuple * UIndex(A.slice);
    int64_t from = 0;
    int64_t to = 0;
    for (int d = SLICE_NDIM - 1; d >= 0; --d) {
      int64_t here = int64_t(TAKE_AXIS(d, rest, UIndex(A.slice_shape[d])));
      from += here * A.update_strides[d];
      to += here * A.slice_strides[d];
    }
    to += tuple_offset(tuple, from);
    PUT_UPDATE(A.dst, to, A.updates, from);
  }
}
