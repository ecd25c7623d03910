// sorts_before(a, b): a < b with NaN last, as MLX sorts. Complex numbers are
// ordered by real, then imaginary part; one with a NaN part is a NaN.
#ifndef ORDER_GLSL
#define ORDER_GLSL

#include "common/types.glsl"

#define ORDER_PLAIN(VALUE)                                                    \
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
// On the bits: compilers may assume that there is no NaN.
bool order_nan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}
bool sorts_before(float a, float b) {
  return !order_nan(a) && (order_nan(b) || a < b);
}
bool sorts_before(vec2 a, vec2 b) {
  bool a_nan = order_nan(a.x) || order_nan(a.y);
  bool b_nan = order_nan(b.x) || order_nan(b.y);
  bool less = a.x < b.x || (a.x == b.x && a.y < b.y);
  return !a_nan && (b_nan || less);
}

#endif
