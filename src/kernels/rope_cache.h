#ifndef ROPE_CACHE_H
#define ROPE_CACHE_H

#include "common/interface.h"

BEGIN_INTERFACE

#define MAX_ROPE_PARTS 3

// From one sequence, head and position to the next, in items.
struct HeadStrides {
  int b, n, t;
};

// Heads of D contiguous items, B x N x L of them. Addresses; 0: none.
struct RopePart {
  uint64_t x;
  uint64_t weight; // of the norm, with NORM
  uint64_t normed, y, cache; // what was normed, then turned; copied, too
  uint64_t offset, freqs; // int32, of each sequence; float32, of each pair
  HeadStrides x_strides, normed_strides, y_strides, cache_strides;
  int offset_stride, freqs_stride;
  uint N, L, D;
  uint half_dims; // 0: x is copied to the cache as it is
  uint blocks; // workgroups along N
  uint flags; // ROPE_...
  float scale, log2_base, log2_base_low;
  float eps, inverse_n;
  uint groups; // its workgroups: those p, p + MAX_ROPE_PARTS, ... of part p
};
#define ROPE_NORMED 1u // the root mean square norm comes first
#define ROPE_TRADITIONAL 2u

struct RopeCacheArgs {
  RopePart parts[MAX_ROPE_PARTS];
};

#ifdef __cplusplus
struct RopeCacheVariant {
  Type T;
  int LANES, CHUNKS; // a head, as NormVariant has them
  bool VEC;
  bool operator==(const RopeCacheVariant&) const = default;
  KERNEL_VARIANT("rope_cache", T, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE

#endif
