// Ternary primitives, used by ternary.comp and the generated kernels of
// src/jit.
#pragma once

#define TERNARY_SELECT(T)                                                     \
  T Select(bool c, T x, T y) { return c ? x : y; }
TERNARY_SELECT(bool)
TERNARY_SELECT(int8_t)
TERNARY_SELECT(int16_t)
TERNARY_SELECT(int32_t)
TERNARY_SELECT(int64_t)
TERNARY_SELECT(uint8_t)
TERNARY_SELECT(uint16_t)
TERNARY_SELECT(uint32_t)
TERNARY_SELECT(uint64_t)
TERNARY_SELECT(float)
FOR_DOUBLE(TERNARY_SELECT)
TERNARY_SELECT(vec2)
