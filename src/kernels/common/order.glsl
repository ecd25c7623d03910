// Ordering of values of any type: is_nan(x), less(a, b), and sorts_before(a,
// b), which is a < b with NaN last, as in MLX. Complex numbers are ordered by
// real, then imaginary part; one with a NaN part is a NaN.
#pragma once

#include "common/types.glsl"

#define ORDER_PLAIN(VALUE)                                                    \
  bool is_nan(VALUE x) { return false; }                                    \
  bool less(VALUE a, VALUE b) { return a < b; }                               \
  bool sorts_before(VALUE a, VALUE b) { return a < b; }
ORDER_PLAIN(uint8_t)
ORDER_PLAIN(uint16_t)
ORDER_PLAIN(uint32_t)
ORDER_PLAIN(uint64_t)
ORDER_PLAIN(int8_t)
ORDER_PLAIN(int16_t)
ORDER_PLAIN(int32_t)
ORDER_PLAIN(int64_t)

bool sorts_before(bool a, bool b) {
  return !a && b;
}
#define LESS_REAL_(VALUE)                                                     \
  bool less(VALUE a, VALUE b) { return a < b; }
#define SORTS_REAL_(VALUE)                                                    \
  bool sorts_before(VALUE a, VALUE b) {                                       \
    return !is_nan(a) && (is_nan(b) || a < b);                                \
  }
LESS_REAL_(float)
FOR_DOUBLE(LESS_REAL_)
bool less(vec2 a, vec2 b) {
  return c_less(a, b);
}
SORTS_REAL_(float)
FOR_DOUBLE(SORTS_REAL_)
bool sorts_before(vec2 a, vec2 b) {
  return !is_nan(a) && (is_nan(b) || less(a, b));
}
