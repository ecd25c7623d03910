// variants: COUNT=1 M_NDIM=1,2,16 WIDE=0 ; COUNT=0 WORD=1,2,4,8 M_NDIM=1 S_NDIM=1 WIDE=0 ; COUNT=0 WORD=4 M_NDIM=16 S_NDIM=16 WIDE=0,1
// The k-th true item of a batch row's mask takes the k-th item of the row's
// source. A row is cut into blocks, one a workgroup: COUNT=1 counts their true
// items, COUNT=0 adds up the counts before its block and assigns.
#if WIDE
#define LARGE
#endif
#include "common/index.glsl"
#if !COUNT
#include "common/words.glsl"
#define WORD_ARGS                                                             \
  Ptr_u32 counts;                                                             \
  WordPtr src;                                                                \
  WordPtr dst;
#define SRC_ARGS                                                              \
  int64_t src_strides[S_NDIM];                                                \
  uint src_shape[S_NDIM];                                                     \
  uint src_ndim;
#else
#include "common/types.glsl"
#define WORD_ARGS Ptr_u32 counts;
#define SRC_ARGS
#endif

#define ARGS                                                                  \
  Ptr_bool mask;                                                              \
  WORD_ARGS                                                                   \
  uint64_t row;                                                               \
  uint64_t src_row;                                                           \
  int64_t mask_strides[M_NDIM];                                               \
  uint mask_shape[M_NDIM];                                                    \
  uint mask_ndim;                                                             \
  uint blocks;                                                                \
  uint rows;                                                                  \
  uint chunks;                                                                \
  SRC_ARGS
#include "common/args.glsl"

#define WG_SIZE 256
layout(local_size_x = WG_SIZE) in;

shared uint partial[WG_SIZE / 4];

// The sum over the workgroup. Uniform control flow only.
uint workgroup_total(uint x) {
  x = subgroupAdd(x);
  if (subgroupElect()) {
    partial[gl_SubgroupID] = x;
  }
  barrier();
  uint total = 0;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    total += partial[s];
  }
  barrier();
  return total;
}

#if M_NDIM == MAX_NDIM
#define MASK_NDIM A.mask_ndim
#else
#define MASK_NDIM M_NDIM
#endif
#if !COUNT
#if S_NDIM == MAX_NDIM
#define SRC_NDIM A.src_ndim
#else
#define SRC_NDIM S_NDIM
#endif
#endif

void main() {
  uint group = group_index();
  uint batch = group / A.blocks;
  uint block = group - batch * A.blocks;
  bool real = batch < A.rows;
  UIndex row = UIndex(A.row);
  UIndex begin = UIndex(block) * (A.chunks * WG_SIZE);

#if COUNT
  uint mine = 0;
#else
  uint before = 0;
  if (real) {
    for (uint b = gl_LocalInvocationID.x; b < block; b += WG_SIZE) {
      before += load(A.counts, batch * A.blocks + b);
    }
  }
  before = workgroup_total(before);
#endif
  for (uint c = 0; c < A.chunks; ++c) {
    UIndex i = begin + c * WG_SIZE + gl_LocalInvocationID.x;
    bool chosen = false;
    if (real && i < row) {
      int64_t at;
      OFFSET(
          at, UIndex(batch) * row + i, A.mask_shape, A.mask_strides, MASK_NDIM);
      chosen = load(A.mask, at);
    }
#if COUNT
    mine += chosen ? 1u : 0u;
#else
    uint flag = chosen ? 1u : 0u;
    uint within = subgroupExclusiveAdd(flag);
    uint total = subgroupAdd(flag);
    if (subgroupElect()) {
      partial[gl_SubgroupID] = total;
    }
    barrier();
    uint chunk_total = 0;
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      within += s < gl_SubgroupID ? partial[s] : 0u;
      chunk_total += partial[s];
    }
    barrier();
    uint position = before + within;
    // A source that is too short leaves the rest as it was.
    if (chosen && position < A.src_row) {
      int64_t from;
      OFFSET(
          from,
          UIndex(batch) * UIndex(A.src_row) + position,
          A.src_shape,
          A.src_strides,
          SRC_NDIM);
      store_word(A.dst, UIndex(batch) * row + i, load_word(A.src, from));
    }
    before += chunk_total;
#endif
  }
#if COUNT
  mine = workgroup_total(mine);
  if (real && gl_LocalInvocationID.x == 0) {
    store(A.counts, group, mine);
  }
#endif
}
