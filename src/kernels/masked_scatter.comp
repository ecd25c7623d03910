// Assigns item k of a source row to the k-th true position of the mask row. A
// row is split into blocks, one per workgroup: COUNT=1 counts their true items,
// COUNT=0 sums the counts of earlier blocks and assigns.
#include "common/index.glsl"
#include "common/words.glsl"
#include "masked_scatter.h"
#define ARGS_BLOCK MaskedScatterArgs
#include "common/args.glsl"

#define WG_SIZE 256
layout(local_size_x = WG_SIZE) in;

shared uint partial[WG_SIZE / 4];

// Exclusive prefix sum over the workgroup, and its total. Must be called in
// uniform control flow.
uint workgroup_scan(uint x, out uint total) {
  uint before = subgroupExclusiveAdd(x);
  x = subgroupAdd(x);
  if (subgroupElect()) {
    partial[gl_SubgroupID] = x;
  }
  barrier();
  total = 0;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    before += s < gl_SubgroupID ? partial[s] : 0u;
    total += partial[s];
  }
  barrier();
  return before;
}

#if NDIM == MAX_NDIM
#define AXES(ndim) int(ndim)
#else
#define AXES(ndim) NDIM
#endif
// Defines name_offset: row-major index to offset in the mask or the source.
#define OFFSET_INTO(name)                                                     \
  int64_t name##_offset(UIndex rest) {                                        \
    int64_t offset = 0;                                                       \
    for (int d = AXES(A.name##_ndim) - 1; d >= 0; --d) {                      \
      offset += int64_t(TAKE_AXIS(d, rest, UIndex(A.name##_shape[d]))) *      \
          A.name##_strides[d];                                                \
    }                                                                         \
    return offset;                                                            \
  }
OFFSET_INTO(mask)
#if !COUNT
OFFSET_INTO(src)
#endif

void main() {
  uint group = group_index();
  uint batch = group / A.blocks;
  uint block = group - batch * A.blocks;
  bool real = batch < A.rows;
  UIndex row = UIndex(A.row);
  UIndex begin = UIndex(block) * (A.chunks * WG_SIZE);

  uint mine = 0; // true items, of earlier blocks or of this one
#if !COUNT
  uint before;
  if (real) {
    for (uint b = gl_LocalInvocationID.x; b < block; b += WG_SIZE) {
      mine += load(A.counts, batch * A.blocks + b);
    }
  }
  workgroup_scan(mine, before);
#endif
  for (uint c = 0; c < A.chunks; ++c) {
    UIndex i = begin + c * WG_SIZE + gl_LocalInvocationID.x;
    bool chosen = false;
    if (real && i < row) {
      chosen = load(A.mask, mask_offset(UIndex(batch) * row + i));
    }
#if COUNT
    mine += chosen ? 1u : 0u;
#else
    uint total;
    uint position = before + workgroup_scan(chosen ? 1u : 0u, total);
    before += total;
    // A source that is too short leaves the remaining items unchanged.
    if (chosen && position < A.src_row) {
      int64_t from = src_offset(UIndex(batch) * UIndex(A.src_row) + position);
      store_word(A.dst, UIndex(batch) * row + i, load_word(A.src, from));
    }
#endif
  }
#if COUNT
  uint total;
  workgroup_scan(mine, total);
  if (real && gl_LocalInvocationID.x == 0) {
    store(A.counts, group, total);
  }
#endif
}
