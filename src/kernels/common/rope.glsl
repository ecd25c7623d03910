// Rotary embedding steps shared by rope.comp and rope_cache.comp; `precise`, so
// that results are bit-identical.
#pragma once

#include "common/math.glsl"

// 1 / base^(i / half_dims), from log2(base) in two parts.
float inverse_frequency(uint i, uint half_dims, float log2_base, float low_part) {
  float d = math_divide(float(i), float(half_dims));
  precise float high = upper12(d) * upper12(log2_base);
  precise float low = (d - upper12(d)) * log2_base +
      upper12(d) * (log2_base - upper12(log2_base)) + d * low_part;
  precise float inverse = math_exp2(-high) * math_exp2(-low);
  return inverse;
}

// The cosine and sine of turn * inverse.
vec2 cos_sin(float turn, float inverse) {
  precise float angle = turn * inverse;
  CircleParts p = reduce_circle(angle);
  float s = sin_kernel(p.r, p.tail);
  float c = cos_kernel(p.r, p.tail);
  vec2 v = (p.q & 1) != 0 ? vec2(s, c) : vec2(c, s);
  v.x = ((p.q + 1) & 2) != 0 ? -v.x : v.x;
  v.y = (p.q & 2) != 0 ? -v.y : v.y;
  return is_finite(angle) ? v : vec2(NAN_F);
}

// First and second item of the pair (p, q) rotated by v = (cos, sin).
float turned_first(float p, float q, vec2 v) {
  precise float r = p * v.x - q * v.y;
  return r;
}
float turned_second(float p, float q, vec2 v) {
  precise float r = p * v.y + q * v.x;
  return r;
}
