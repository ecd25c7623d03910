// Eight bfloat16 items as float16, after scaling by a power of two.
#pragma once

#include "common/types.glsl"

#define LEAST_TOP (-112) // 2^(15 - LEAST_TOP) is a finite float

// The largest of eight finite items, and the smallest nonzero one minus 1 (0xffff:
// none), as bits without sign.
void span_of(uvec4 q, out uint largest, out uint smallest) {
  const uint16_t past = uint16_t(0x80); // makes infinity and NaN negative
  i16vec2 most = i16vec2(past);
  u16vec2 least = u16vec2(0xffff);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    u16vec2 x = unpack16(q[i] & 0x7fff7fffu);
    most = max(most, i16vec2(x + past));
    least = min(least, x - uint16_t(1));
  }
  largest = uint(max(most.x, most.y)) - past;
  smallest = uint(min(least.x, least.y));
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
