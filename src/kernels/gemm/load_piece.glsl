// Pieces (acc.glsl) in memory: load_piece(p, i) and store_piece(p, i, v) of items
// from i on, aligned to a piece.
#pragma once

#if BY_QUADS
#include "gemm/vec.glsl"
#define load_piece load4
#define store_piece store_vec4
#elif FLOAT64
#define PIECE_AT(p, i) Ptr_f64x2(uint64_t(p) + item_index(i) * 8).v[0]
#define load_piece PIECE_AT
#define store_piece(p, i, v) PIECE_AT(p, i) = v
#else
#define PIECE_AT(p, i) Ptr_f32x4(uint64_t(p) + item_index(i) * 8).v[0]
Piece load_piece(T_PTR p, int64_t i) {
  vec4 x = PIECE_AT(p, i);
  return Piece(x.xy, x.zw);
}
#define store_piece(p, i, v) PIECE_AT(p, i) = vec4((v)[0], (v)[1])
#endif
