// Acc is the type of sums of products, PART_PTR that of partial sums in memory,
// Piece a vector of PIECE Acc, 16 bytes: what invocations load at once without
// conflicts of banks.
#pragma once

#include "common/types.glsl"

#if T_KIND == KIND_COMPLEX
#define Acc vec2
#define Piece mat2x2
#define PIECE 2
#define ZERO vec2(0.0)
vec2 FMA(vec2 x, vec2 y, vec2 z) {
  return z + c_mul(x, y);
}
#define PART_PTR Ptr_c64
#define PART_SIZE 8
#elif FLOAT64
#define Acc double
#define Piece dvec2
#define PIECE 2
#define ZERO 0.0lf
#define FMA fma
#define PART_PTR Ptr_f64
#define PART_SIZE 8
#else
#define BY_QUADS 1 // items in memory, four per access
#define Acc float
#define Piece vec4
#define PIECE 4
#define ZERO 0.0
#define FMA fma
#define PART_PTR Ptr_f32
#define PART_SIZE 4
#endif
