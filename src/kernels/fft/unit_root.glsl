// exp(-2 pi i k / n) for 0 <= k < n, accurate to the last place: reduction to
// octants keeps the angle within pi / 4.
#pragma once

#include "common/math.glsl"

vec2 unit_root(uint64_t k, uint64_t n) {
  uint octant = uint(8ul * k / n);
  uint64_t rest = 8ul * k - octant * n;
  rest = (octant & 1u) != 0u ? n - rest : rest;
  float angle = float(rest) / float(n) * 0.785398163397448310;
  float c = math_cos(angle), s = math_sin(angle);
  bool swapped = ((octant + 1u) & 2u) != 0u;
  vec2 r = swapped ? vec2(s, c) : vec2(c, s);
  r.x = octant >= 2u && octant < 6u ? -r.x : r.x;
  r.y = octant < 4u ? -r.y : r.y;
  return r;
}

vec2 times(vec2 a, vec2 b) {
  return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
