// variants: WORD=1,2,4,8 I=i32,u32 NDIM=1,2 WIDE=0 ; WORD=4 I=i64 NDIM=16 WIDE=0,1
// out[pre, k, post] = src[pre, index[pre, k, post], post]. The strides are of
// the axes without the indexed one.
#if WIDE
#define LARGE
#endif
#include "common/index.glsl"
#include "common/indices.glsl"
#include "common/words.glsl"

#define ARGS                                                                  \
  WordPtr src;                                                                \
  I_PTR index;                                                                \
  WordPtr dst;                                                                \
  uint64_t count;                                                             \
  uint64_t post;                                                              \
  int64_t src_axis_stride;                                                    \
  int64_t index_axis_stride;                                                  \
  int64_t src_strides[NDIM];                                                  \
  int64_t index_strides[NDIM];                                                \
  uint shape[NDIM];                                                           \
  uint ndim;                                                                  \
  uint index_size;                                                            \
  int src_size;
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex i = flat_index();
  if (i < UIndex(A.count)) {
    UIndex post = UIndex(A.post);
    UIndex row = i / post;
    UIndex pre = row / A.index_size;
    UIndex rest = pre * post + (i - row * post);
    int64_t at = int64_t(row - pre * A.index_size) * A.index_axis_stride;
    int64_t from = 0;
    for (int d = LAST_AXIS; d >= 0; --d) {
      int64_t here = int64_t(TAKE_AXIS(d, rest, UIndex(A.shape[d])));
      at += here * A.index_strides[d];
      from += here * A.src_strides[d];
    }
    int64_t k = wrap_index(load(A.index, at), A.src_size);
    from += k * A.src_axis_stride;
    store_word(A.dst, i, load_word(A.src, from));
  }
}
