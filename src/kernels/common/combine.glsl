// combine_Sum, combine_Prod, combine_Max, combine_Min for every value type: the
// reductions of scatters and slice updates. Max and Min propagate NaN; complex
// numbers are ordered by real, then imaginary part; the sum of bools is or, the
// product is and.
#pragma once

#include "common/order.glsl"
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
FOR_DOUBLE(COMBINE_NUMBER)

bool combine_Sum(bool a, bool b) { return a || b; }
bool combine_Prod(bool a, bool b) { return a && b; }
bool combine_Max(bool a, bool b) { return a || b; }
bool combine_Min(bool a, bool b) { return a && b; }

#define COMBINE_REAL(VALUE)                                                   \
  VALUE combine_Max(VALUE a, VALUE b) {                                       \
    return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b;                     \
  }                                                                           \
  VALUE combine_Min(VALUE a, VALUE b) {                                       \
    return is_nan(a) ? a : is_nan(b) ? b : a < b ? a : b;                     \
  }
COMBINE_REAL(float)
FOR_DOUBLE(COMBINE_REAL)

vec2 combine_Sum(vec2 a, vec2 b) {
  return a + b;
}
vec2 combine_Prod(vec2 a, vec2 b) {
  return c_mul(a, b);
}
vec2 combine_Max(vec2 a, vec2 b) {
  return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
}
vec2 combine_Min(vec2 a, vec2 b) {
  return is_nan(a) || (!is_nan(b) && less(a, b)) ? a : b;
}
