// variants: WORD=1,2,4,8 I=i32,u32 NDIM=1,2 WIDE=0 ; T=f32,bf16,u8,i64,c64 REDUCE=combine_Sum SUM=1 I=i64 NDIM=16 WIDE=0,1
// out[pre, index[pre, k, post], post] takes updates[pre, k, post]. The strides
// are of the axes without the indexed one.
#include "common/updates.glsl"

#define ARGS                                                                  \
  ITEM_PTR updates;                                                           \
  I_PTR index;                                                                \
  ITEM_PTR dst;                                                               \
  uint64_t count;                                                             \
  uint64_t post;                                                              \
  int64_t update_axis_stride;                                                 \
  int64_t index_axis_stride;                                                  \
  int64_t dst_axis_stride;                                                    \
  int64_t update_strides[NDIM];                                               \
  int64_t index_strides[NDIM];                                                \
  int64_t dst_strides[NDIM];                                                  \
  uint shape[NDIM];                                                           \
  uint ndim;                                                                  \
  uint index_size;                                                            \
  int dst_size;
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    UIndex post = UIndex(A.post);
    UIndex row = i / post;
    UIndex pre = row / A.index_size;
    UIndex rest = pre * post + (i - row * post);
    int64_t along = int64_t(row - pre * A.index_size);
    int64_t from = along * A.update_axis_stride;
    int64_t at = along * A.index_axis_stride;
    int64_t to = 0;
    for (int d = LAST_AXIS; d >= 0; --d) {
      int64_t here = int64_t(TAKE_AXIS(d, rest, UIndex(A.shape[d])));
      from += here * A.update_strides[d];
      at += here * A.index_strides[d];
      to += here * A.dst_strides[d];
    }
    int64_t k = wrap_index(load(A.index, at), A.dst_size);
    to += k * A.dst_axis_stride;
    PUT_UPDATE(A.dst, to, A.updates, from);
  }
}
