// combine_Sum, combine_Prod, combine_Max, combine_Min over every value type:
// what scatters and slice updates do where two values meet. Max and Min keep
// NaN; complex numbers are ordered by real, then imaginary part; bools are
// added and multiplied as or, and.
#ifndef COMBINE_GLSL
#define COMBINE_GLSL

#include "common/types.glsl"

#define COMBINE_NUMBER(VALUE)                                                 \
  VALUE combine_Sum(VALUE a, VALUE b) { return VALUE(a + b); }                \
  VALUE combine_Prod(VALUE a, VALUE b) { return VALUE(a * b); }
#define COMBINE_ORDERED(VALUE)                                                \
  COMBINE_NUMBER(VALUE)                                                       \
  VALUE combine_Max(VALUE a, VALUE b) { return a > b ? a : b; }               \
  VALUE combine_Min(VALUE a, VALUE b) { return a < b ? a : b; }

COMBINE_ORDERED(uint8_t)
COMBINE_ORDERED(uint16_t)
COMBINE_ORDERED(uint32_t)
COMBINE_ORDERED(uint64_t)
COMBINE_ORDERED(int8_t)
COMBINE_ORDERED(int16_t)
COMBINE_ORDERED(int32_t)
COMBINE_ORDERED(int64_t)
COMBINE_NUMBER(float)

bool combine_Sum(bool a, bool b) { return a || b; }
bool combine_Prod(bool a, bool b) { return a && b; }
bool combine_Max(bool a, bool b) { return a || b; }
bool combine_Min(bool a, bool b) { return a && b; }

// On the bits: compilers may assume that there is no NaN.
bool combine_nan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}
bool combine_nan(vec2 x) {
  return combine_nan(x.x) || combine_nan(x.y);
}
float combine_Max(float a, float b) {
  return combine_nan(a) ? a : combine_nan(b) ? b : a > b ? a : b;
}
float combine_Min(float a, float b) {
  return combine_nan(a) ? a : combine_nan(b) ? b : a < b ? a : b;
}

vec2 combine_Sum(vec2 a, vec2 b) {
  return a + b;
}
vec2 combine_Prod(vec2 a, vec2 b) {
  return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
bool combine_greater(vec2 a, vec2 b) {
  return a.x > b.x || (a.x == b.x && a.y > b.y);
}
vec2 combine_Max(vec2 a, vec2 b) {
  return combine_nan(a) ? a
      : combine_nan(b)  ? b
      : combine_greater(a, b) ? a
                              : b;
}
vec2 combine_Min(vec2 a, vec2 b) {
  return combine_nan(a) ? a
      : combine_nan(b)  ? b
      : combine_greater(b, a) ? a
                              : b;
}

#endif
