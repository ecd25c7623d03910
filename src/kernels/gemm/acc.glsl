// Acc is the type of sums of products, PART_PTR that of partial sums in memory,
// Quad a vector of four Acc.
#pragma once

#include "common/types.glsl"

#if T_KIND == KIND_COMPLEX
#define Acc vec2
#define Quad mat4x2
#define ZERO vec2(0.0)
vec2 FMA(vec2 x, vec2 y, vec2 z) {
  return z + c_mul(x, y);
}
#define PART_PTR Ptr_c64
#define PART_SIZE 8
#elif FLOAT64
#define Acc double
#define Quad dvec4
#define ZERO 0.0lf
#define FMA fma
#define PART_PTR Ptr_f64
#define PART_SIZE 8
#else
#define BY_QUADS 1 // items in memory, four per access
#define Acc float
#define Quad vec4
#define ZERO 0.0
#define FMA fma
#define PART_PTR Ptr_f32
#define PART_SIZE 4
#endif
