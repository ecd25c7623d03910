#pragma once

#include "common/interface.h"

BEGIN_INTERFACE

#define MAX_ROPE_PARTS 3

// Strides in items between sequences, heads and positions.
struct RopeStrides {
  int b, n, t;
};

// B x N x L heads of D contiguous items. Addresses may be 0 (absent).
struct RopePart {
  uint64_t x;
  uint64_t weight; // weight of the norm
  uint64_t normed, y, cache; // outputs: normed; normed and rotated; copy of y
  uint64_t offset, freqs; // int32 per sequence; float32 per pair
  RopeStrides x_strides, normed_strides, y_strides, cache_strides;
  int offset_stride, freqs_stride;
  uint N, L, D;
  uint half_dims; // 0: x is copied to the cache without rotation
  uint blocks; // workgroups along N
  uint flags; // ROPE_NORMED, ROPE_TRADITIONAL
  float scale, log2_base, log2_base_low;
  float eps, inverse_n;
  uint groups; // workgroups of part p: p, p + MAX_ROPE_PARTS, ...
};
#define ROPE_NORMED 1u // applies the RMS norm before the rotation
#define ROPE_TRADITIONAL 2u

struct RopeCacheArgs {
  RopePart parts[MAX_ROPE_PARTS];
};

#ifdef __cplusplus
struct RopeCacheVariant {
  Type T;
  int LANES, CHUNKS; // per head, as in NormVariant
  bool VEC;
  bool operator==(const RopeCacheVariant&) const = default;
  KERNEL_VARIANT("rope_cache", RopeCacheArgs, T, LANES, CHUNKS, VEC)
};
#endif

END_INTERFACE
