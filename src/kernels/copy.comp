// variants: WORD=1,2,4,8,16 NDIM=1,3 DYN_IN=0 DYN_OUT=0 WIDE=0 ; WORD=4 NDIM=16 DYN_IN=0,1 DYN_OUT=0,1 WIDE=0,1 ; S=f32,i64,bool,c64 D=bf16,u8,c64,bool NDIM=1,2 DYN_IN=0 DYN_OUT=0 WIDE=0 ; REDUCE=combine_Sum,combine_Max S=f32 D=f32 NDIM=2 DYN_IN=0 DYN_OUT=0 WIDE=0
// Any strides to any strides. With WORD: raw words. With S and D: a cast.
// With REDUCE, too: the destination is combined with the source.
#if WIDE
#define LARGE
#endif
#include "common/types.glsl"
#include "common/index.glsl"

#ifdef WORD
#include "common/words.glsl"
#define SRC_PTR WordPtr
#define DST_PTR WordPtr
#else
#define SRC_PTR S_PTR
#define DST_PTR D_PTR
#endif
#ifdef REDUCE
#include "common/combine.glsl"
#endif

// Offsets that an earlier kernel computed, added to the static ones.
#if DYN_IN
#define DYN_IN_ARG Ptr_i64 dynamic_in;
#else
#define DYN_IN_ARG
#endif
#if DYN_OUT
#define DYN_OUT_ARG Ptr_i64 dynamic_out;
#else
#define DYN_OUT_ARG
#endif

#define ARGS                                                                  \
  SRC_PTR src;                                                                \
  DYN_IN_ARG                                                                  \
  DYN_OUT_ARG                                                                 \
  DST_PTR dst;                                                                \
  UIndex count;                                                               \
  Index in_offset;                                                            \
  Index out_offset;                                                           \
  Index in_strides[NDIM];                                                     \
  Index out_strides[NDIM];                                                    \
  uint shape[NDIM];                                                           \
  uint ndim;
#include "common/args.glsl"

layout(local_size_x = 256) in;

void main() {
  UIndex rest = flat_index();
  if (rest < A.count) {
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
#ifdef WORD
    store_word(A.dst, to, load_word(A.src, from));
#elif defined(REDUCE)
    store(A.dst, to, REDUCE(load(A.dst, to), load(A.src, from)));
#else
    store(A.dst, to, D_CAST(load(A.src, from)));
#endif
  }
}
