// Eight bfloat16 items as float16, after scaling by a power of two.
#pragma once

#include "common/types.glsl"

#define LEAST_TOP (-112) // 2^(15 - LEAST_TOP) is a finite float

// The largest of eight finite items, and the smallest nonzero one minus 1, as
// bits without sign.
void span_of(uvec4 q, out uint largest, out uint smallest) {
  largest = 0;
  smallest = ~0u;
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    uint x = q[i / 2] >> (16 * (i % 2)) & 0x7fffu;
    largest = max(largest, x < 0x7f80u ? x : 0u);
    smallest = min(smallest, x - 1u);
  }
}

#define HALF_PAIR(low, high)                                                  \
  (uint(f32_to_f16(low)) | uint(f32_to_f16(high)) << 16)

uvec4 half_items(uvec4 q, int top) {
  float by = uintBitsToFloat(uint(15 - max(top, LEAST_TOP) + 127) << 23);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    float low = uintBitsToFloat(q[i] << 16) * by;
    float high = uintBitsToFloat(q[i] & 0xffff0000u) * by;
    q[i] = HALF_PAIR(low, high);
  }
  return q;
}
